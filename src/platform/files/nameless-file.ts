/** Temporary files that vanish when they are closed, however the process ends: their names are removed at once. */
import { openSync, unlinkSync, writeSync } from 'node:fs'
import { join } from 'node:path'

/** Create an unnamed file on the file system of `dir`. Returns a descriptor for reading and writing. */
export function openNameless(dir: string): number {
  const path = join(dir, `.${crypto.randomUUID()}.tmp`)
  const file = openSync(path, 'wx+', 0o600)
  unlinkSync(path)
  return file
}

/** Write all bytes, however few the system accepts per call. */
export function writeAt(file: number, bytes: Uint8Array, position: number): void {
  for (let written = 0; written < bytes.length;)
    written += writeSync(file, bytes, written, bytes.length - written, position + written)
}
