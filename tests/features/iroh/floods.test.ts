/**
 * Peers that send too much, too slowly or nothing at all: what they hold is bounded, and others are served meanwhile.
 */
import { randomBytes } from 'node:crypto'
import { expect, test } from 'bun:test'
import { emptyTally, livenessEcho, type EchoTally } from '../../../src/features/push/iroh/liveness-echo.ts'
import { openEndpoint, type IrohEndpoint } from '../../../src/platform/network/iroh-endpoint.ts'
import type { Service } from '../../../src/platform/network/iroh-listener.ts'
import { startPds } from '../../support/servers/pds.ts'
import { startQuicPeer, type QuicPeer } from '../../support/servers/quic-peer.ts'
import { until } from '../../support/until.ts'
import { addressOf, ECHO, echoed, opened, refusalOf, withEndpoint } from '../../support/servers/endpoint.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'
import { thrownBy } from '../../support/thrown.ts'

const TOO_LATE = 2
const REFUSED = 1

const { pds } = useWorld({ config: withEndpoint })
const peer = setUp(startQuicPeer)

interface Echo extends AsyncDisposable {
  tally: EchoTally
  endpoint: IrohEndpoint
  dial(): ReturnType<QuicPeer['dial']>
}

/** The echo of the server with other bounds, which are reached sooner. */
async function echoWith(bounds: Partial<Service>): Promise<Echo> {
  const tally = emptyTally()
  const service = { ...livenessEcho(pds.ctx, tally), ...bounds }
  const sockets = ['127.0.0.1:0', '[::1]:0']
  const endpoint = await openEndpoint({ secret: randomBytes(32), discovery: false, sockets, alpn: ECHO, service })
  const address = { nodeId: endpoint.nodeId, addresses: endpoint.sockets }
  return { tally, endpoint, dial: () => peer.dial(address, ECHO), [Symbol.asyncDispose]: () => endpoint.close() }
}

const isServed = async (connection: Awaited<ReturnType<Echo['dial']>>) =>
  Buffer.from(await echoed(connection, Buffer.from('?'))).toString() === '?'

test('a stream that stays silent is refused after its time, and its place is free once it moves', async () => {
  await using echo = await echoWith({ streamMillis: 1000, maxStreams: 2 })
  const connection = await echo.dial()
  const silent = await opened(connection, Buffer.from('then nothing'))
  expect(await refusalOf(silent)).toBe(TOO_LATE)
  expect(await isServed(connection)).toBe(true)
  expect(echo.tally.streams).toEqual({ served: 1, refused: 1, failed: 0 })
  await silent.send.finish()
  await until(async () => {
    const both = await Promise.allSettled([isServed(connection), isServed(connection)])
    return both.every(({ status }) => status === 'fulfilled')
  })
})

test('a stream on which bytes arrive one by one is stopped too', async () => {
  await using echo = await echoWith({ streamMillis: 1000 })
  const { send } = await opened(await echo.dial(), Buffer.from('s'))
  await until(() =>
    send.writeAll([1]).then(
      () => false,
      (error: Error) => error.message.startsWith(`Stopped(${REFUSED})`),
    ),
  )
  expect(echo.tally.streams).toEqual({ served: 0, refused: 1, failed: 0 })
})

test('a connection of which nothing can be expected any more is closed', async () => {
  await using echo = await echoWith({ streamMillis: 1000, maxStreams: 3 })
  const [stuck, other] = [await echo.dial(), await echo.dial()]
  for (let i = 0; i < 3; i++) await opened(stuck, Buffer.from('?'))
  expect(await stuck.closed()).toBe('closed by peer: 0')
  expect(await isServed(other)).toBe(true)
})

test('requests that do not end share a bounded memory, and leave it when they are given up', async () => {
  // Exactly as much as one of them takes, so that not a byte is left while it is there.
  await using echo = await echoWith({ maxHeldBytes: 59_000, freeBytes: 1000 })
  const connection = await echo.dial()
  const both = await Promise.all([60_000, 60_000].map((length) => opened(connection, randomBytes(length))))
  // Either may be the one for which there is no room.
  const [refused, code] = await Promise.race(both.map(async (stream) => [stream, await refusalOf(stream)] as const))
  expect(code).toBe(REFUSED)
  expect(await isServed(connection)).toBe(true)
  await both.find((stream) => stream !== refused)!.send.reset(0n)
  await until(() => echo.tally.streams.failed === 1)
  expect(await echoed(connection, randomBytes(60_000))).toHaveLength(60_000)
})

test('a full server takes the place of a connection that is idle, and of none that is in use', async () => {
  await using echo = await echoWith({ maxConnections: 2 })
  const [first, second] = [await echo.dial(), await echo.dial()]
  await until(() => echo.endpoint.connections === 2)
  await opened(first, Buffer.from('in use'))
  await until(() => isServed(first))
  expect(await isServed(await echo.dial())).toBe(true)
  expect(await second.closed()).toBe('closed by peer: 0')
  expect(first.closeReason()).toBeNull()
  expect(echo.endpoint.connections).toBe(2)
})

test('a server that is full of connections in use refuses others', async () => {
  await using echo = await echoWith({ maxConnections: 1 })
  const only = await echo.dial()
  await opened(only, Buffer.from('in use'))
  await until(() => isServed(only))
  expect(await thrownBy(echo.dial())).toThrow()
  expect(echo.tally.connections).toEqual({ served: 1, refused: 1, failed: 0 })
  only.close(0n, [])
  await until(() => echo.endpoint.connections === 0)
  expect(await isServed(await echo.dial())).toBe(true)
})

test('an address that keeps connecting is refused for a while', async () => {
  const server = await addressOf(pds)
  pds.clock.advance({ secs: 20 })
  const dialAll = async (count: number) => {
    const all = await Promise.allSettled(Array.from({ length: count }, () => peer.dial(server, ECHO)))
    return all.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []))
  }
  const connected = await dialAll(150)
  // The server has two addresses, and the peer comes from one of its own to each.
  expect(connected.length).toBeGreaterThanOrEqual(60)
  expect(connected.length).toBeLessThanOrEqual(120)
  expect(await isServed(connected[0]!)).toBe(true)
  pds.clock.advance({ secs: 20 })
  expect(await dialAll(1)).toHaveLength(1)
  for (const connection of connected) connection.close(0n, [])
})

test('addresses of one IPv6 network count as one, because a host may have all of them', () => {
  pds.clock.advance({ secs: 20 })
  const { admits } = livenessEcho(pds.ctx, emptyTally())
  const admitted = Array.from({ length: 70 }, (_, i) => admits(`2001:db8:1:2::${i}`))
  expect(admitted).toEqual([...Array<boolean>(60).fill(true), ...Array<boolean>(10).fill(false)])
  expect(admits('2001:db8:1:3::1')).toBe(true)
  pds.clock.advance({ secs: 20 })
})

test('addresses that connect as often as they may leave something for another network', () => {
  pds.clock.advance({ secs: 20 })
  const { admits } = livenessEcho(pds.ctx, emptyTally())
  for (let round = 0; round < 60; round++) for (let i = 0; i < 20; i++) admits(`192.0.${i}.1`)
  expect(admits('192.0.0.1')).toBe(false)
  expect(['198.51.100.7', '203.0.113.7', '2001:db8:7::1'].map(admits)).toEqual([true, true, true])
  pds.clock.advance({ secs: 20 })
})

test('peers are told apart by their addresses, whatever their ports', async () => {
  const sources: string[] = []
  await using echo = await echoWith({ admits: (source) => sources.push(source) > 0 })
  const { nodeId, sockets } = echo.endpoint
  // Whoever knows both addresses of a server reaches it by either.
  for (const address of sockets) {
    await using other = await startQuicPeer()
    await other.dial({ nodeId, addresses: [address] }, ECHO)
  }
  expect(new Set(sources)).toEqual(new Set(['127.0.0.1', '::1']))
})

/** Asks for the same echo again and again, until the server has had enough. Returns how many there were. */
async function servedBefore(connection: Awaited<ReturnType<Echo['dial']>>, bytes: Uint8Array): Promise<number> {
  for (let served = 0; served < 10_000; served++) {
    const isRefused = await echoed(connection, bytes).then(
      () => false,
      () => true,
    )
    if (isRefused) return served
  }
  throw new Error('the server never had enough')
}

test.each([
  ['of the greatest length', 64 * 1024, Math.floor((4 * 1024 * 1024) / (68 * 1024))],
  ['without any bytes', 0, (4 * 1024 * 1024) / 4096],
])('whoever asks for ever more echoes %s is disconnected, and may come back later', async (_, length, expected) => {
  const server = await addressOf(pds)
  pds.clock.advance({ secs: 20 })
  const greedy = await peer.dial(server, ECHO)
  expect(await servedBefore(greedy, randomBytes(length))).toBe(expected)
  expect(await greedy.closed()).toBe('closed by peer: 0')
  pds.clock.advance({ secs: 20 })
  expect(await isServed(await peer.dial(server, ECHO))).toBe(true)
})

test('whoever asks for ever more echoes leaves some for other networks', () => {
  pds.clock.advance({ secs: 20 })
  const { affords } = livenessEcho(pds.ctx, emptyTally())
  const longest = { streams: 1, bytes: 64 * 1024 }
  for (let asked = 0; asked < 200; asked++) affords('192.0.2.1', longest)
  expect(affords('192.0.2.1', longest)).toBe(false)
  expect(['198.51.100.7', '203.0.113.7', '2001:db8:7::1'].map((source) => affords(source, longest))).toEqual([
    true,
    true,
    true,
  ])
  pds.clock.advance({ secs: 20 })
})

test('stopping does not wait for peers, whatever they have open', async () => {
  await using other = await startPds(withEndpoint)
  const server = await addressOf(other)
  const connections = await Promise.all(Array.from({ length: 20 }, () => peer.dial(server, ECHO)))
  for (const connection of connections) for (let i = 0; i < 5; i++) await opened(connection, randomBytes(1000))
  await other.stop()
  for (const connection of connections) expect(await connection.closed()).toBe('closed by peer: 0')
})
