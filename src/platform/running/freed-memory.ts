/**
 * Has the allocator keep freed memory for a second, instead of a tenth of one, before it returns it to the system.
 *
 * A server under load soon needs that memory again, and the system clears each page that it hands out. The allocator
 * reads its options only when a process begins to run a program, so the process runs this program a second time.
 */
import { selfCommand } from './self.ts'

/** Source: mimalloc, `purge_delay`, in milliseconds. */
const OPTION = 'MIMALLOC_PURGE_DELAY'
const KEPT_MILLIS = 1000

/**
 * Replaces the running program with `holdfast <words>`, in the same process, with the option set. Returns if it is set
 * already, on other systems than Linux, and if the system refuses.
 */
export function keepFreedMemory(words: readonly string[], onRefusal: (error: unknown) => void): void {
  if (process.platform !== 'linux' || process.env[OPTION] !== undefined) return
  const [program, ...args] = selfCommand(...words)
  try {
    // Not /proc/self/exe: the system takes the name of the process from this path.
    process.execve?.(program, [program, ...process.execArgv, ...args], {
      ...process.env,
      [OPTION]: String(KEPT_MILLIS),
    })
  } catch (error) {
    onRefusal(error)
  }
}
