/** What requests cost a server that is a process of its own: processor time of its threads, and garbage. Linux only. */
import { readdirSync, readFileSync } from 'node:fs'

/** Microseconds that the threads of a process have run. */
export interface ProcessorTime {
  /** The thread that runs JavaScript. */
  main: number
  /** The threads on which the runtime compiles hot functions. */
  compilers: number
  all: number
}

export function processorTime(pid: number): ProcessorTime {
  const time = { main: 0, compilers: 0, all: 0 }
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    const task = `/proc/${pid}/task/${thread}`
    const micros = Number(readFileSync(`${task}/schedstat`, 'utf8').split(' ')[0]) / 1000
    time.all += micros
    if (Number(thread) === pid) time.main += micros
    else if (/JIT/i.test(readFileSync(`${task}/comm`, 'utf8'))) time.compilers += micros
  }
  return time
}

const QUIET_SHARE = 0.05
const MAX_WARM_UPS = 100

/** Does a piece of work until the compilers take less than a twentieth of the time of the main thread. */
export async function warmUp(pid: number, work: () => Promise<void>): Promise<void> {
  for (let i = 0; i < MAX_WARM_UPS; i++) {
    const before = processorTime(pid)
    await work()
    const after = processorTime(pid)
    if (after.compilers - before.compilers < QUIET_SHARE * (after.main - before.main)) return
  }
}

/** One collection: which heap, and its size before and after, in KiB. */
const collectionLine = /\[GC<(\w+)>: START (\w) (\d+)kb[^]*?=> (\d+)kb, p=/g

/**
 * What was allocated between the first collection and the last, in kB, and how many there were in between. `log` is
 * what the runtime says with BUN_JSC_logGC=1. Null if there were fewer than two.
 */
export function garbageIn(log: string): { kilobytes: number; collections: number } | null {
  const heaps = Map.groupBy(log.matchAll(collectionLine), ([, heap]) => heap!)
  // Other threads have heaps of their own, which are collected seldom.
  const [main = []] = [...heaps.values()].sort((a, b) => b.length - a.length)
  if (main.length < 2) return null
  const grown = main.slice(1).map(([, , , before], i) => Number(before) - Number(main[i]![4]))
  return { kilobytes: grown.reduce((sum, kib) => sum + kib, 0) * 1.024, collections: main.length - 1 }
}
