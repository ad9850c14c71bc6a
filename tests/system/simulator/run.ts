/**
 * Runs simulated worlds, one for each seed, and prints the trace of the first that fails. Seeds from 1 up; `--help`
 * lists the options.
 */
import { availableParallelism } from 'node:os'
import { parseArgs } from 'node:util'
import { knownFaults } from './patches.ts'
import { kindNames, kindOf } from './moods.ts'
import { install, inTurn, realMillis, requirePatched } from './seams.ts'

/** After so many worlds, a line says how far it is. */
const PIECE = 1000

const HELP = `npx bun tests/system/simulator/run.ts [options]

  --seeds <count>    how many worlds (100)
  --from <seed>      the first of them (1)
  --millis <count>   how long clients and faults act in each, in virtual milliseconds (1000)
  --processes <n>    how many processes share the seeds (1)
  --fault <name>     put a known fault back: ${Object.keys(knownFaults).join(', ')}
  --mood <name>      only worlds of this kind: ${kindNames.join(', ')}
  --trace            print the traces of worlds that hold too
`

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '100' },
    from: { type: 'string', default: '1' },
    millis: { type: 'string', default: '1000' },
    processes: { type: 'string', default: '1' },
    fault: { type: 'string' },
    mood: { type: 'string' },
    trace: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})

const [from, seeds, processes] = [values.from, values.seeds, values.processes].map(Number) as [number, number, number]
/** What the runtime reads as a process begins. */
const runtime: Readonly<Record<string, string>> = {
  // The compiler for code that runs for long takes more than it gives: a world is much code that runs a few times.
  BUN_JSC_useFTLJIT: '0',
  // The next world takes the memory that this one has freed: to give it back in between takes a fifth of all time.
  MIMALLOC_PURGE_DELAY: '-1',
}

if (values.help) process.stdout.write(HELP)
else if (processes > 1 || Object.keys(runtime).some((name) => process.env[name] === undefined))
  process.exitCode = await share(Math.min(processes, availableParallelism()))
else process.exitCode = await runSeeds()

/** Let processes with such a runtime run a part of the seeds each. Returns the exit code. */
async function share(count: number): Promise<number> {
  const each = Math.ceil(seeds / count)
  const codes = await Promise.all(
    Array.from({ length: count }, (_, i) => {
      const first = from + i * each
      const options = ['--from', first, '--seeds', Math.min(each, from + seeds - first), '--millis', values.millis]
      const given = (['fault', 'mood'] as const).flatMap((name) =>
        values[name] === undefined ? [] : [`--${name}`, values[name]],
      )
      if (values.trace) given.push('--trace')
      const child = Bun.spawn([process.execPath, import.meta.path, ...options.map(String), ...given], {
        env: { ...runtime, ...process.env },
        stdout: 'inherit',
        stderr: 'inherit',
      })
      for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => child.kill(signal))
      return child.exited
    }),
  )
  return Math.max(...codes)
}

/** Processor time of this process. */
function usedSecs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1e6
}

async function runSeeds(): Promise<number> {
  const fault = values.fault === undefined ? null : knownFaults[values.fault]
  if (fault === undefined) throw new Error(`there is no fault of the name ${values.fault}`)
  const patches = fault?.patches ?? []
  install(patches)
  const { makeGround, runWorld } = await import('./world.ts')
  const ground = await makeGround()
  requirePatched(patches)
  const began = { millis: realMillis(), used: usedSecs() }
  const sinceBegun = () => (usedSecs() - began.used).toFixed(1)
  const totals = { worlds: 0, events: 0, acknowledged: 0, refused: 0, unknown: 0, numbered: 0, millis: 0 }
  const befallen = new Map<string, number>()
  const kinds = new Map<string, number>()
  let failed: number | null = null
  for (let seed = from; seed < from + seeds && failed === null; seed++) {
    const { name: kind, ...options } = kindOf(seed)
    if (values.mood !== undefined && kind !== values.mood) continue
    const outcome = await inTurn(() =>
      runWorld(ground, seed, { ...options, clients: 3, millis: Number(values.millis) }),
    )
    totals.worlds++
    kinds.set(kind, (kinds.get(kind) ?? 0) + 1)
    for (const name of ['events', 'acknowledged', 'refused', 'unknown', 'numbered', 'millis'] as const)
      totals[name] += outcome[name]
    for (const name of outcome.faults) befallen.set(name, (befallen.get(name) ?? 0) + 1)
    if (outcome.failure !== null) failed = seed
    else if (totals.worlds % PIECE === 0)
      console.log(`${totals.worlds} worlds hold, through seed ${seed}, in ${sinceBegun()} s of a processor`)
    if (outcome.failure === null && !values.trace) continue
    console.log(`seed ${seed}\n${outcome.trace.join('\n')}\nseed ${seed} ${outcome.failure ?? 'holds'}\n`)
  }
  const secs = ((realMillis() - began.millis) / 1000).toFixed(1)
  console.log(
    `${totals.worlds} worlds in ${secs} s, ${sinceBegun()} s of a processor: ${totals.acknowledged} changes acknowledged, ${totals.refused} refused, ${totals.unknown} of unknown outcome, ` +
      `${totals.numbered} events numbered, ${totals.events} steps in ${Math.round(totals.millis / 1000)} virtual seconds`,
  )
  const listed = (counts: Map<string, number>) => [...counts].map(([name, count]) => `${count} ${name}`).join(', ')
  console.log(`kinds: ${listed(kinds)}`)
  console.log(`faults: ${listed(befallen)}`)
  console.log(failed === null ? 'All hold.' : `Seed ${failed} fails.`)
  return failed === null ? 0 : 1
}
