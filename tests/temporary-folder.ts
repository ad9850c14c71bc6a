/**
 * Prints the folder for the temporary files of the suite, which writes 30 GB of them, a few at a time: what `TMPDIR`
 * says; else a file system in memory, if programs may run from it and the machine has memory for both; else that of the
 * system.
 */
import { chmodSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const IN_MEMORY = '/dev/shm'
/** Several times what the tests that run at one moment have written and not removed. */
const FREE_BYTES = 6 * 1024 ** 3
/** With the servers, browsers and databases of the tests. */
const FREE_MEMORY_BYTES = 12 * 1024 ** 3

function hasRoom(folder: string): boolean {
  const { bavail, bsize } = statfsSync(folder)
  return (
    bavail * bsize >= FREE_BYTES &&
    Math.min(process.availableMemory(), process.constrainedMemory()) >= FREE_MEMORY_BYTES
  )
}

function programsRunFrom(folder: string): boolean {
  const place = mkdtempSync(join(folder, 'holdfast-'))
  const program = join(place, 'program')
  try {
    writeFileSync(program, '#!/bin/sh\n')
    chmodSync(program, 0o700)
    return Bun.spawnSync([program]).success
  } finally {
    rmSync(place, { recursive: true })
  }
}

function suits(folder: string): boolean {
  try {
    return hasRoom(folder) && programsRunFrom(folder)
  } catch {
    // It is not there, it cannot be written, or nothing in it can be run.
    return false
  }
}

console.log(process.env['TMPDIR'] || (suits(IN_MEMORY) ? IN_MEMORY : tmpdir()))
