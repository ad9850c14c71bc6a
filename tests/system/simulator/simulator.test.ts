/**
 * The simulator, in processes of its own: it replaces time and chance of the whole process. More seeds, and what it
 * says of one that fails: `npx bun tests/system/simulator/run.ts --help`.
 */
import { expect, setDefaultTimeout, test } from 'bun:test'
import { knownFaults } from './patches.ts'

/** On a machine that is busy with other tests. */
setDefaultTimeout(600_000)

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

test('in simulated worlds with faults, no invariant breaks', async () => {
  const { output, exitCode } = await simulate('--seeds', process.env['SIMULATED_SEEDS'] ?? '40')
  expect(output).toEndWith('All hold.\n')
  expect(exitCode).toBe(0)
})

test('a seed always makes the same world, whatever came before it', async () => {
  const [alone, among] = await Promise.all([
    simulate('--from', '12', '--seeds', '1', '--trace'),
    simulate('--from', '10', '--seeds', '3', '--trace'),
  ])
  const traceOf = ({ output }: Report) => output.slice(output.indexOf('seed 12\n'), output.indexOf('seed 12 holds'))
  expect(traceOf(alone)).toContain('is told by node 1: acknowledged')
  expect(traceOf(among)).toBe(traceOf(alone))
})

test('a fault that is put back is found, and the trace tells who did what until then', async () => {
  const { output, exitCode } = await simulate('--fault', 'head-guard', '--seeds', '60')
  expect(output).toMatch(/ {2}client \d +asks node \d: \w+Record/)
  expect(output).toMatch(/ {2}WATCH +event \d+ follows/)
  expect(exitCode).toBe(1)
})

test.each(['revisions', 'lost-commit', 'skipped-frames', 'codes'])(
  'the fault "%s" is found within 60 seeds',
  async (name) => {
    const { output } = await simulate('--fault', name, '--seeds', '60')
    expect(/^seed \d+ (.{12,})$/m.exec(output)?.[1] ?? 'nothing was found').toMatch(knownFaults[name]!.found)
  },
)
