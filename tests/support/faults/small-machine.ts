/**
 * Programs that have little memory and one processor. The memory is that of a control group of Linux, which counts what
 * the programs write, their pages of files, and what the kernel keeps for them; whoever needs more is killed.
 */
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { cpus } from 'node:os'
import { until } from '../until.ts'

export interface SmallMachine extends AsyncDisposable {
  /** The words before those of a program that runs there. */
  wrapper: string[]
  /** Why its memory has no limit here, or null if it has one. */
  lacks: string | null
  /** How many programs were killed because the memory was used up. */
  kills(): number
}

/** Where control groups are, and the files that limit one, in version 2 of them and in version 1. */
const versions = [
  { root: '/sys/fs/cgroup', limits: ['memory.max'], swap: ['memory.swap.max', '0'], events: 'memory.events' },
  {
    root: '/sys/fs/cgroup/memory',
    limits: ['memory.limit_in_bytes'],
    swap: ['memory.swappiness', '0'],
    events: 'memory.oom_control',
  },
] as const

export function smallMachine(memoryBytes: number): SmallMachine {
  // The last processor is the one on which the tests, and what interrupts, run least.
  const oneProcessor = Bun.which('taskset') === null ? [] : ['taskset', '--cpu-list', String(cpus().length - 1)]
  const faults: string[] = []
  for (const version of versions)
    try {
      return inGroup(version, memoryBytes, oneProcessor)
    } catch (error) {
      faults.push(String(error))
    }
  return { wrapper: oneProcessor, lacks: faults.join('; '), kills: () => 0, async [Symbol.asyncDispose]() {} }
}

function inGroup(
  { root, limits, swap, events }: (typeof versions)[number],
  memoryBytes: number,
  oneProcessor: string[],
): SmallMachine {
  const group = join(root, `holdfast-test-${crypto.randomUUID()}`)
  const at = (name: string) => join(group, name)
  mkdirSync(group)
  const remove = () => rmdirSync(group)
  try {
    for (const name of limits) writeFileSync(at(name), String(memoryBytes), { flag: 'r+' })
    if (existsSync(at(swap[0]))) writeFileSync(at(swap[0]), swap[1], { flag: 'r+' })
  } catch (error) {
    remove()
    throw error
  }
  const isEmpty = () => readFileSync(at('cgroup.procs'), 'utf8') === ''
  return {
    wrapper: ['sh', '-c', 'echo $$ > "$1" && shift && exec "$@"', 'sh', at('cgroup.procs'), ...oneProcessor],
    lacks: null,
    kills: () => Number(/^oom_kill (\d+)$/m.exec(readFileSync(at(events), 'utf8'))![1]),
    async [Symbol.asyncDispose]() {
      await until(isEmpty)
      remove()
    },
  }
}
