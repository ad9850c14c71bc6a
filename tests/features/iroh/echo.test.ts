/** The echo by which others see that the server is reachable over QUIC. Anybody may connect: what must not happen? */
import { randomBytes } from 'node:crypto'
import { beforeAll, expect, test } from 'bun:test'
import { request } from '../../support/clients/http.ts'
import { startQuicPeer } from '../../support/servers/quic-peer.ts'
import { until } from '../../support/until.ts'
import {
  addressOf,
  ECHO,
  echoed,
  opened,
  endpointStatus,
  refusalOf,
  withEndpoint,
} from '../../support/servers/endpoint.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'
import { atOneNode } from '../../support/turns.ts'
import { thrownBy } from '../../support/thrown.ts'

const LONGEST = 64 * 1024

let server: { nodeId: string; addresses: string[] }

const { pds } = useWorld({ config: withEndpoint })
const peer = setUp(startQuicPeer)
beforeAll(async () => {
  server = await addressOf(pds)
})

/** A connection that is told apart from others by its end. */
const dialled = () => peer.dial(server, ECHO)
const isAlive = async (connection: Awaited<ReturnType<typeof dialled>>) =>
  Buffer.from(await echoed(connection, Buffer.from('?'))).toString() === '?'

test('what a stream brings comes back, whatever its length', async () => {
  const connection = await dialled()
  expect(connection.remoteId().toString()).toBe(server.nodeId)
  for (const length of [0, 1, 4096, 5000, LONGEST]) {
    const bytes = randomBytes(length)
    expect(Buffer.from(await echoed(connection, bytes)).equals(bytes)).toBe(true)
  }
  connection.close(0n, [])
})

test('a stream that is too long is refused, and the others of its connection are not', async () => {
  const connection = await dialled()
  const slow = await opened(connection, Buffer.from('slow'))
  const long = await opened(connection, randomBytes(LONGEST + 1))
  expect(await refusalOf(long)).toBe(1)
  await slow.send.finish()
  expect(Buffer.from(await slow.recv.readToEnd(100)).toString()).toBe('slow')
  expect(await isAlive(connection)).toBe(true)
  connection.close(0n, [])
})

test('a stream that its peer gives up takes nothing with it', async () => {
  const connection = await dialled()
  const given = await opened(connection, randomBytes(100))
  await given.send.reset(5n)
  const unread = await opened(connection, randomBytes(100))
  await unread.recv.stop(5n)
  await unread.send.finish()
  expect(await isAlive(connection)).toBe(true)
  connection.close(0n, [])
})

test('a connection has 16 streams at a time; further ones are refused until one of them ends', async () => {
  const connection = await dialled()
  const open = await Promise.all(Array.from({ length: 16 }, () => opened(connection, randomBytes(10))))
  expect(await refusalOf(await opened(connection, randomBytes(10)))).toBe(1)
  expect(await isAlive(await dialled())).toBe(true)
  await open[0]!.send.finish()
  await open[0]!.recv.readToEnd(100)
  await until(() => isAlive(connection).catch(() => false))
  connection.close(0n, [])
})

test('no other protocol connects', async () => {
  for (const alpn of ['ezpds/notify/0', 'ezpds/iroh/1', 'h3', 'x'])
    expect(await thrownBy(peer.dial(server, alpn))).toThrow(
      /no_application_protocol|peer doesn't support any known protocol|error 120/,
    )
})

test('who sends anything else than streams of two directions is disconnected', async () => {
  const strays = [
    async (connection: Awaited<ReturnType<typeof dialled>>) => void (await (await connection.openUni()).writeAll([1])),
    async (connection: Awaited<ReturnType<typeof dialled>>) => connection.sendDatagram([1]),
  ]
  for (const stray of strays) {
    const connection = await dialled()
    await stray(connection)
    expect(await connection.closed()).toBe('closed by peer: 0')
  }
})

test('it carries no HTTP', async () => {
  const connection = await dialled()
  const bytes = Buffer.from('GET /xrpc/_health HTTP/1.1\r\nHost: localhost\r\n\r\n')
  expect(Buffer.from(await echoed(connection, bytes)).equals(bytes)).toBe(true)
  connection.close(0n, [])
})

test('operators see what happens', async () => {
  using _ = atOneNode(pds, 'one node has the endpoint')
  await until(async () => (await endpointStatus(pds)).openConnections === 1)
  expect(await endpointStatus(pds)).toEqual({
    nodeId: server.nodeId,
    isHere: true,
    sockets: [expect.stringMatching(/^127\.0\.0\.1:\d+$/), expect.stringMatching(/^\[::1\]:\d+$/)],
    openConnections: 1,
    echoesServed: expect.any(Number),
    echoesRefused: expect.any(Number),
    connectionsRefused: 0,
  })
  const { body: metrics } = await request(`${pds.url}/metrics`)
  expect(metrics).toContain('\niroh_connections 1\n')
  expect(metrics).toMatch(/\niroh_echoes_total\{outcome="served"\} [1-9]\d*\n/)
  expect(metrics).toMatch(/\niroh_echoes_total\{outcome="refused"\} [1-9]\d*\n/)
  expect(metrics).toMatch(/\niroh_connections_total\{outcome="failed"\} 4\n/)
})
