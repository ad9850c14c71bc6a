/** The blobs that a server has stored, seen behind its back: files in its folder, or objects in its bucket. */
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestPds } from './servers/pds.ts'
import { OTHER_NODE } from './turns.ts'

export class Stored {
  constructor(readonly pds: TestPds) {}

  #path(cid: string): string {
    return join(this.pds.dataDir, 'blobs', cid.slice(-2), cid)
  }

  #key(cid: string): string {
    return `blobs/${cid.slice(7, 9)}/${cid}`
  }

  /** Status and error name of a read whose bytes are missing or damaged. */
  get LOST() {
    return this.pds.bucket === null
      ? { status: 503, error: 'ServiceUnavailable' }
      : { status: 502, error: 'UpstreamFailure' }
  }

  /** CIDs, in no order. */
  names(): string[] {
    const { bucket, dataDir } = this.pds
    if (bucket !== null) return bucket.keys().map((key) => key.slice(key.lastIndexOf('/') + 1))
    return readdirSync(join(dataDir, 'blobs'), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => entry.name)
  }

  has(cid: string): boolean {
    const { bucket } = this.pds
    return bucket === null ? existsSync(this.#path(cid)) : bucket.keys().includes(this.#key(cid))
  }

  read(cid: string): Uint8Array {
    const { bucket } = this.pds
    return bucket === null ? new Uint8Array(readFileSync(this.#path(cid))) : bucket.read(this.#key(cid))
  }

  async write(cid: string, bytes: Uint8Array): Promise<void> {
    const { bucket } = this.pds
    if (bucket === null) writeFileSync(this.#path(cid), bytes)
    else await bucket.write(this.#key(cid), bytes)
  }

  delete(cid: string): void {
    const { bucket } = this.pds
    if (bucket === null) rmSync(this.#path(cid))
    else bucket.delete(this.#key(cid))
  }

  /** Files of uploads that have not ended. */
  incoming(): string[] {
    return this.#incoming().flatMap((folder) => readdirSync(folder))
  }

  /** Bytes of these files. */
  incomingBytes(): number {
    return this.#incoming()
      .flatMap((folder) => readdirSync(folder).map((name) => join(folder, name)))
      .reduce((sum, path) => sum + (statSync(path, { throwIfNoEntry: false })?.size ?? 0), 0)
  }

  #incoming(): string[] {
    return [this.pds.dataDir, join(this.pds.dataDir, OTHER_NODE)]
      .map((folder) => join(folder, 'blobs', '.incoming'))
      .filter((folder) => existsSync(folder))
  }

  /** Let removals happen that wait, as they do in a bucket, and be forgotten. */
  async removalsEnd(): Promise<void> {
    if (this.pds.bucket === null) return
    await this.pds.age('blob_removal')
    await this.pds.runSweep('blob-gc')
    await this.pds.age('blob_removal')
    await this.pds.runSweep('blob-gc')
  }
}
