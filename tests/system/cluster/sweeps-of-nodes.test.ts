/** Sweeps on several servers: one of them makes a pass, and every one of them can tell how it went. */
import { expect, spyOn, test } from 'bun:test'
import { sql } from '../../../src/platform/database/database.ts'
import { Metrics } from '../../../src/platform/running/metrics.ts'
import { SweepRunner, type Sweep } from '../../../src/platform/running/sweeps.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { ADMIN_TOKEN } from '../../support/servers/config.ts'
import type { TestPds } from '../../support/servers/pds.ts'
import { until } from '../../support/until.ts'
import { useCluster } from '../../support/cluster-world.ts'

const {
  cluster,
  nodes: [here, there],
} = useCluster(2)

const operator = bearer(ADMIN_TOKEN)
const runnerAt = (pds: TestPds, sweep: Sweep) => new SweepRunner({ ...pds.ctx, metrics: new Metrics() }, [sweep])

/** A sweep whose passes last until the test ends them. */
function slowSweep(name: string, changes: Partial<Sweep> = {}) {
  const passes: { node: string; signal: AbortSignal; end: (seen: number) => void; fail: (error: Error) => void }[] = []
  const sweep: Sweep = {
    name,
    intervalSecs: () => 3600,
    async run(ctx, signal) {
      const { promise, resolve, reject } = Promise.withResolvers<number>()
      passes.push({ node: ctx.db.cluster!.node.id, signal, end: resolve, fail: reject })
      return { seen: await promise }
    },
    ...changes,
  }
  return { sweep, passes }
}

test('whoever asks for a pass at one node joins the pass of another, and gets its report', async () => {
  const { sweep, passes } = slowSweep('joined')
  const [one, other] = [runnerAt(here, sweep), runnerAt(there, sweep)]
  const first = one.run('joined')
  await until(() => passes.length === 1)
  // It joins what it finds, so it has been refused the lease before the pass ends.
  using takes = spyOn(there.ctx.db.cluster!, 'take')
  const second = other.run('joined')
  const attempt = () => takes.mock.calls.findIndex(([lease]) => lease.endsWith(' joined'))
  await until(() => attempt() >= 0)
  expect(await takes.mock.results[attempt()]!.value).toBeNull()
  passes[0]!.end(7)
  expect(await Promise.all([first, second])).toEqual([{ seen: 7 }, { seen: 7 }])
  expect(passes).toHaveLength(1)
})

test('a pass that fails at one node is made by the one that waits for it', async () => {
  const { sweep, passes } = slowSweep('failing')
  const [one, other] = [runnerAt(here, sweep), runnerAt(there, sweep)]
  const first = one.run('failing').catch((error: Error) => error.message)
  await until(() => passes.length === 1)
  const second = other.run('failing')
  passes[0]!.fail(new Error('no'))
  expect(await first).toBe('no')
  await until(() => passes.length === 2)
  passes[1]!.end(1)
  expect(await second).toEqual({ seen: 1 })
  expect(passes[1]!.node).toBe(there.ctx.db.cluster!.node.id)
})

/** As when the line between the nodes and the database is cut. */
const cutOff = sql`
  SELECT pg_terminate_backend(pid) FROM pg_stat_activity
  WHERE datname = current_database() AND pid IN (SELECT pid FROM pg_locks WHERE locktype = 'advisory')`

test('a pass is told to end when its node has lost the lease', async () => {
  const { sweep, passes } = slowSweep('lost')
  const pass = runnerAt(here, sweep).run('lost')
  await until(() => passes.length === 1)
  await there.ctx.db.all(cutOff)
  await until(() => passes[0]!.signal.aborted)
  passes[0]!.end(0)
  expect(await pass).toEqual({ seen: 0 })
  expect(passes).toHaveLength(1)
})

test('nodes that start and look again make one pass in an interval', async () => {
  const passes: number[] = []
  const sweep: Sweep = {
    name: 'regular',
    intervalSecs: () => 1,
    run: async () => ({ seen: passes.push(performance.now()) }),
  }
  const runners = [runnerAt(here, sweep), runnerAt(there, sweep)]
  for (const runner of runners) runner.start()
  await until(() => passes.length >= 3)
  await Promise.all(runners.map((runner) => runner.stop()))
  for (const [i, at] of passes.slice(1).entries()) expect(at - passes[i]!).toBeGreaterThan(900)
})

test('every node tells of a pass that one of them made', async () => {
  await here.runSweep('did-cache')
  for (const { url } of cluster.nodes) {
    const { body } = await request(`${url}/v1/admin/health`, { headers: operator })
    expect(body.sweeps.didCache).toEqual({
      completedAt: expect.any(Number),
      ...(await here.ctx.sweeps.lastPasses()).get('did-cache')!.report,
    })
    const { body: metrics } = await request(`${url}/metrics`, { headers: operator })
    expect(metrics).toMatch(/^\w*did_cache_last_run_timestamp \d+$/m)
  }
  expect(
    (await request(`${there.url}/v1/admin/sweeps/did-cache/run`, { method: 'POST', headers: operator })).status,
  ).toBe(200)
})
