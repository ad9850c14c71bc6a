/**
 * The simulator, in processes of its own: it replaces time and chance of the whole process. More seeds, and what it
 * says of one that fails: `npx bun tests/system/simulator/run.ts --help`.
 */
import { expect, test } from 'bun:test'
import { knownFaults } from './patches.ts'

/** Of a test, in milliseconds. Only a hang takes that long, on however busy a machine. */
const LIMIT_MILLIS = 900_000

const PROGRAM = `${import.meta.dir}/run.ts`

interface Report {
  output: string
  exitCode: number
}

async function simulate(...options: string[]): Promise<Report> {
  const program = Bun.spawn([process.execPath, PROGRAM, ...options], { stdout: 'pipe', stderr: 'inherit' })
  const output = await new Response(program.stdout).text()
  return { output, exitCode: await program.exited }
}

test(
  'in simulated worlds with faults, no invariant breaks, and a seed always makes the same world',
  async () => {
    const [many, alone] = await Promise.all([
      simulate('--seeds', process.env['SIMULATED_SEEDS'] ?? '20', '--trace'),
      // Of every kind, and without the worlds before, of which the process keeps what it has made.
      simulate('--from', '12', '--seeds', '9', '--trace'),
    ])
    expect(many.output).toEndWith('All hold.\n')
    expect(many.exitCode).toBe(0)
    for (let seed = 12; seed <= 20; seed++) {
      const traceOf = ({ output }: Report) =>
        output.slice(output.indexOf(`seed ${seed}\n`), output.indexOf(`seed ${seed} holds`))
      expect(traceOf(alone)).toMatch(/is told by node \d: acknowledged/)
      expect(traceOf(many)).toBe(traceOf(alone))
    }
  },
  LIMIT_MILLIS,
)

test(
  'a fault that is put back is found, and the trace tells who did what until then',
  async () => {
    const { output, exitCode } = await simulate('--fault', 'head-guard', '--seeds', '20')
    expect(output).toMatch(/ {2}client \d +asks node \d: \w+Record/)
    expect(output).toMatch(/ {2}WATCH +event \d+ follows/)
    expect(/^seed \d+ (.{12,})$/m.exec(output)?.[1]).toMatch(knownFaults['head-guard']!.found)
    expect(exitCode).toBe(1)
  },
  LIMIT_MILLIS,
)
