/**
 * Gives back the memory of pages of the executable that only the start needed.
 *
 * The system maps 64 kB of a file around every page that is touched. After the start, most of what the executable keeps
 * in memory is code that ran once, and its neighbours. The process gives all of it back; what it needs again comes from
 * the system's cache of the file, without a read of the disk.
 */
import { readFileSync, readlinkSync } from 'node:fs'
import { isCompiled } from './self.ts'

/** The first moments bring back what a server needs at rest. */
const AFTER_MILLIS = 500
/** As C libraries for Linux are named: those of GNU, then of musl. */
const cLibraries = ['libc.so.6', `libc.musl-${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}.so.1`]
/** Source: madvise(2), `MADV_DONTNEED`. */
const DONT_NEED = 4

/** Once the server has started, give back what only the start needed. Only the executable does, and only on Linux. */
export function releaseStartPagesSoon(onFault: (error: unknown) => void): void {
  if (!isCompiled || process.platform !== 'linux') return
  setTimeout(() => release().catch(onFault), AFTER_MILLIS).unref()
}

async function release(): Promise<void> {
  // Loaded here, because it takes 10 ms.
  const { dlopen } = await import('bun:ffi')
  const library = opened(dlopen)
  try {
    for (const { start, bytes } of unchangedMappings()) library.symbols.madvise(start, bytes, DONT_NEED)
  } finally {
    library.close()
  }
}

type Dlopen = typeof import('bun:ffi').dlopen

function opened(dlopen: Dlopen) {
  const faults: unknown[] = []
  for (const name of cLibraries)
    try {
      return dlopen(name, { madvise: { args: ['u64', 'u64', 'i32'], returns: 'i32' } })
    } catch (error) {
      faults.push(error)
    }
  throw new AggregateError(faults, 'no C library could be opened')
}

interface Mapping {
  start: bigint
  bytes: bigint
}

/**
 * Returns where the executable is mapped, cannot be written to, and is the same as the file on every page. The dynamic
 * linker may have written to pages before it protected them, and giving those back would lose what it wrote.
 */
function unchangedMappings(): Mapping[] {
  const executable = readlinkSync('/proc/self/exe')
  const found: Mapping[] = []
  let mapping: Mapping | null = null
  for (const line of readFileSync('/proc/self/smaps', 'utf8').split('\n'))
    if (line.endsWith(` ${executable}`)) {
      const [range = '', mode = ''] = line.split(' ')
      const [start, end] = range.split('-').map((address) => BigInt(`0x${address}`))
      mapping = mode.includes('w') ? null : { start: start!, bytes: end! - start! }
    } else if (line.startsWith('Anonymous:')) {
      if (mapping !== null && line.endsWith(' 0 kB')) found.push(mapping)
      mapping = null
    }
  return found
}
