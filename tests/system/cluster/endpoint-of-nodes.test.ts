/**
 * Several servers on one database have one QUIC key: one of them at a time has the endpoint, and talks to the push
 * relay.
 */
import { SQL } from 'bun'
import { expect, test } from 'bun:test'
import { createAccount } from '../../support/clients/account.ts'
import { operate } from '../../support/clients/ceremony.ts'
import { startCluster, type TestCluster } from '../../support/servers/cluster.ts'
import { ADMIN_TOKEN } from '../../support/servers/config.ts'
import type { TestPds } from '../../support/servers/pds.ts'
import { runProgram } from '../../support/servers/program.ts'
import { PushRelay } from '../../support/servers/push-relay.ts'
import { startQuicPeer } from '../../support/servers/quic-peer.ts'
import { until } from '../../support/until.ts'
import { addressOf, ECHO, echoed, endpointStatus, withEndpoint } from '../../support/servers/endpoint.ts'
import { Phone, tell, waitingSteps } from '../../support/clients/phone.ts'

/** The servers that have an endpoint open. */
const holders = async (nodes: readonly TestPds[]): Promise<TestPds[]> => {
  const states = await Promise.all(nodes.map(endpointStatus))
  return nodes.filter((_, i) => states[i]!.isHere)
}
const untilHeldBy = async (node: TestPds) => until(async () => (await endpointStatus(node)).isHere)

test('one server has the endpoint, all tell its id, and each push goes out once, whoever queued it', async () => {
  await using relay = await PushRelay.start({ codes: null })
  await using cluster = await startCluster(3, { ...relay.config, rateLimit: { enabled: false } })
  const [here, ...others] = cluster.nodes as [TestPds, TestPds, TestPds]
  const { nodeId } = await endpointStatus(here)
  expect(await holders(cluster.nodes)).toEqual([here])
  for (const other of others) {
    expect(await endpointStatus(other)).toMatchObject({ nodeId, isHere: false, sockets: [] })
    expect((await operate(other, '/v1/admin/cluster')).body.leases).toContainEqual(
      expect.objectContaining({
        name: 'iroh endpoint',
        holder: expect.objectContaining({ id: here.ctx.db.cluster!.node.id }),
      }),
    )
  }
  const phone = new Phone(others[0]!, await createAccount(others[0]!, 'ann'))
  expect((await phone.register()).status).toBe(200)
  await until(() => relay.devices.length === 1)
  for (const [i, node] of cluster.nodes.entries()) expect(await tell(node, phone, { title: `event ${i}` })).toBe(1)
  const sent = await relay.untilSent(3)
  expect(await Promise.all(sent.map(async (each) => (await phone.read(each))['title']))).toEqual([
    'event 0',
    'event 1',
    'event 2',
  ])
  await until(async () => (await waitingSteps(here, 'push')) === 0)
  expect(relay.sent).toHaveLength(3)
  expect(relay.connections).toBe(1)
  expect([...relay.enrolled]).toEqual([nodeId])

  const tried = (node: TestPds) =>
    runProgram(['push', 'test', 'ann', '--url', node.url], { SERVICE_ADMIN_TOKEN: ADMIN_TOKEN })
  expect(await tried(others[0]!)).toMatchObject({
    code: 1,
    err: expect.stringContaining('Another server of the cluster has the endpoint'),
  })
  expect(await tried(here)).toMatchObject({ code: 0 })
})

test('another server takes over the endpoint, and what waits for the relay, when its holder stops or loses touch', async () => {
  await using relay = await PushRelay.start({ codes: null })
  await using cluster = await startCluster(2, { ...relay.config, rateLimit: { enabled: false } })
  const [first, second] = cluster.nodes as [TestPds, TestPds]
  const { nodeId } = await endpointStatus(first)
  await using peer = await startQuicPeer()
  const phone = new Phone(second, await createAccount(second, 'ann'))
  await phone.register()
  await until(() => relay.devices.length === 1)

  await first.stop()
  expect(await tell(second, phone, { title: 'while nobody has it' })).toBe(1)
  await untilHeldBy(second)
  expect((await endpointStatus(second)).nodeId).toBe(nodeId)
  const connection = await peer.dial(await addressOf(second), ECHO)
  expect(Buffer.from(await echoed(connection, Buffer.from('?'))).toString()).toBe('?')
  await relay.untilSent(1)

  await first.restart()
  expect(await holders(cluster.nodes)).toEqual([second])
  // The lease ends with the session of its holder, who is not asked.
  await endSessionsOfLeases(cluster)
  expect(await connection.closed()).toBe('closed by peer: 0')
  await until(async () => (await holders(cluster.nodes)).length === 1)
  const [holder] = (await holders(cluster.nodes)) as [TestPds]
  expect(await tell(first, phone, { title: 'after that' })).toBe(1)
  await until(async () => {
    cluster.clock.advance({ secs: 6 })
    await holder.runSteps()
    return relay.sent.length === 2
  })
  expect((await phone.read(relay.sent[1]!))['title']).toBe('after that')
})

test('a server that has switched the endpoint off waits for nobody to have it', async () => {
  await using cluster = await startCluster(1, withEndpoint)
  const [pds] = cluster.nodes as [TestPds]
  await pds.restart({ ...withEndpoint, iroh: { ...withEndpoint.iroh, enabled: false } })
  expect(JSON.stringify((await operate(pds, '/v1/admin/cluster')).body.leases)).not.toContain('iroh')
})

async function endSessionsOfLeases({ databaseUrl }: TestCluster): Promise<void> {
  await using admin = new SQL(databaseUrl, { max: 1 })
  await admin.unsafe(
    "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1 AND pid <> pg_backend_pid()",
  )
}
