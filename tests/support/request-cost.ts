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

/** What the runtime allocates between two collections of a server whose garbage is counted. */
const COLLECTED_BYTES = 1_000_000

/**
 * Settings of a server whose garbage is counted: the runtime says when it collects, and does so whenever that much has
 * been allocated, at no other time. The sizes in what it says would not do: they include room that nothing has used.
 */
export const countedGarbage = {
  BUN_JSC_logGC: '1',
  BUN_JSC_gcMaxHeapSize: String(COLLECTED_BYTES),
  BUN_GC_TIMER_DISABLE: '1',
}

/** The kB that the main thread of such a server has allocated, from what it has said meanwhile. */
export function garbageIn(log: string): number {
  // Other threads have heaps of their own, which are collected seldom.
  const heaps = Map.groupBy(log.matchAll(/\[GC<(\w+)>: START /g), ([, heap]) => heap!)
  return (Math.max(0, ...heaps.values().map(({ length }) => length)) * COLLECTED_BYTES) / 1000
}
