/** What requests cost a server that is a process of its own: processor time of its threads, and garbage. Linux only. */
import { readdirSync, readFileSync } from 'node:fs'

/** Settings of a server that is measured: in development it would also check its responses against the lexicons. */
export const publicService = { SERVICE_DEVELOPMENT: 'false', SERVICE_PUBLIC_URL: 'https://localhost' }

/** Microseconds that the threads of a process have run. */
export interface ProcessorTime {
  /** The thread that runs JavaScript. */
  main: number
  /** The threads on which the runtime compiles hot functions. */
  compilers: number
  all: number
}

/** What each thread of a process has run, in microseconds. */
export type Threads = ReadonlyMap<string, { micros: number; kind: 'main' | 'compilers' | 'others' }>

export function threadsOf(pid: number): Threads {
  return new Map(
    readdirSync(`/proc/${pid}/task`).flatMap((thread) => {
      const task = `/proc/${pid}/task/${thread}`
      try {
        const isCompiler = /JIT/i.test(readFileSync(`${task}/comm`, 'utf8'))
        const kind = Number(thread) === pid ? 'main' : isCompiler ? 'compilers' : 'others'
        return [[thread, { kind, micros: Number(readFileSync(`${task}/schedstat`, 'utf8').split(' ')[0]) / 1000 }]]
      } catch {
        return [] // it has just ended
      }
    }),
  )
}

/** What has run between two looks; threads that have ended since the first are left out. */
export function ranBetween(before: Threads, after: Threads): ProcessorTime {
  const time = { main: 0, compilers: 0, others: 0 }
  for (const [thread, { kind, micros }] of after) time[kind] += micros - (before.get(thread)?.micros ?? 0)
  return { ...time, all: time.main + time.compilers + time.others }
}

const QUIET_SHARE = 0.05
const MAX_WARM_UPS = 100

/** Does a piece of work until the compilers take less than a twentieth of the time of the main thread. */
export async function warmUp(pid: number, work: () => Promise<void>): Promise<void> {
  for (let i = 0; i < MAX_WARM_UPS; i++) {
    const before = threadsOf(pid)
    await work()
    const { main, compilers } = ranBetween(before, threadsOf(pid))
    if (compilers < QUIET_SHARE * main) return
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
