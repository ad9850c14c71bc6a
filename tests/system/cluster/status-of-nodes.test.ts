/** What operators see of several nodes, at each of them. */
import { expect, test } from 'bun:test'
import { request } from '../../support/clients/http.ts'
import { startCluster } from '../../support/servers/cluster.ts'
import { ADMIN_TOKEN, startPds } from '../../support/servers/pds.ts'
import { runProgram } from '../../support/servers/program.ts'
import { until } from '../../support/until.ts'

const headers = { authorization: `Bearer ${ADMIN_TOKEN}` }
const env = { SERVICE_ADMIN_TOKEN: ADMIN_TOKEN }

test('each node lists all nodes, and who holds a lease', async () => {
  await using cluster = await startCluster(2)
  const [a, b] = cluster.nodes
  const lease = await a!.ctx.db.cluster!.take('test')
  const answers = await Promise.all(
    [a!, b!].map(async (node) => (await request(`${node.url}/v1/admin/cluster`, { headers })).body),
  )
  for (const [i, body] of answers.entries()) {
    expect(body).toMatchObject({ database: 'postgres', node: cluster.nodes[i]!.ctx.db.cluster!.node.id })
    expect(body.nodes.map(({ id }: { id: string }) => id)).toEqual(
      cluster.nodes.map(({ ctx }) => ctx.db.cluster!.node.id),
    )
    expect(body.unnumberedEvents).toEqual({ count: 0, oldestAt: null })
    expect(body.nodes.every(({ isAlive }: { isAlive: boolean }) => isAlive)).toBe(true)
    for (const { connections, busyConnections } of body.nodes) {
      expect(connections).toBeGreaterThan(3)
      expect(busyConnections).toBeLessThanOrEqual(connections)
    }
    // This request asks on one of them.
    expect(body.nodes[i].busyConnections).toBeGreaterThan(0)
    expect(body.leases.find(({ name }: { name: string }) => name === 'test').holder.id).toBe(a!.ctx.db.cluster!.node.id)
  }
  const shown = () => runProgram(['cluster', 'status', '--url', b!.url], env)
  expect(await shown()).toMatchObject({ code: 0, out: expect.stringMatching(/^test +\S+ +\d{4}-/m) })
  await lease!.release()
  await until(async () => /^test +none /m.test((await shown()).out))
  expect((await shown()).code).toBe(1)
})

test('a node that died while the clock of PostgreSQL was ahead does not count as alive once that is right', async () => {
  await using cluster = await startCluster(1)
  const [a] = cluster.nodes
  const at = Date.now() + 365 * 86_400_000
  const row = { name: 'dead', version: '1', started_at: at, heartbeat_at: at, clock_id: 1, clock_ahead: 0, beats: 1 }
  await a!.plant('node', { id: crypto.randomUUID(), ...row })
  const { body } = await request(`${a!.url}/v1/admin/cluster`, { headers })
  expect(body.nodes.map(({ name, isAlive }: { name: string; isAlive: boolean }) => [name === 'dead', isAlive])).toEqual(
    [
      [false, true],
      [true, false],
    ],
  )
})

test('a server on SQLite is its only node', async () => {
  await using pds = await startPds({}, { onFile: true })
  expect((await request(`${pds.url}/v1/admin/cluster`, { headers })).body).toEqual({
    database: 'sqlite',
    node: null,
    nodes: [],
    leases: [],
    unnumberedEvents: null,
  })
  expect(await runProgram(['cluster', 'status', '--url', pds.url], env)).toMatchObject({
    code: 0,
    out: expect.stringContaining('the only node'),
  })
})
