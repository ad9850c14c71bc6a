/** Exchanges of the server with its peers: what other features build on. */
import type { Connection } from '@number0/iroh'
import { expect, test } from 'bun:test'
import { peersOf } from '../../../src/features/push/iroh/iroh.ts'
import { withContext } from '../../../src/app.ts'
import { MASTER_KEY, startPds } from '../../support/servers/pds.ts'
import { startQuicPeer } from '../../support/servers/quic-peer.ts'
import { startQuicProcess } from '../../support/servers/quic-process.ts'
import { until } from '../../support/until.ts'
import { thrownBy } from '../../support/thrown.ts'

const ALPN = 'example/1'
const enabled = { iroh: { enabled: true, discovery: false }, signingKeyMasterKey: MASTER_KEY }
const limits = { maxBytes: 1000, timeoutMillis: 5000, silenceMillis: 5000 }
const text = (bytes: Uint8Array) => Buffer.from(bytes).toString()

test('a server without an endpoint has no peers', async () => {
  await using pds = await startPds()
  expect(peersOf(pds.ctx)).toBeNull()
})

test('a command opens no endpoint', async () => {
  await using pds = await startPds(enabled)
  const { config } = pds.ctx
  await pds.stop()
  expect(await withContext(config, async (ctx) => peersOf(ctx))).toBeNull()
})

test('peers are dialled by id and address, and each exchange has a stream of its own', async () => {
  await using pds = await startPds(enabled)
  await using peer = await startQuicPeer({ alpn: ALPN, answer: (request) => Buffer.from(`${text(request)}, answered`) })
  const connection = await peersOf(pds.ctx)!.dial(peer, ALPN, 5000)
  const answers = await Promise.all(
    ['one', 'two', 'three'].map((request) => connection.exchange(Buffer.from(request), limits)),
  )
  expect(answers.map(text)).toEqual(['one, answered', 'two, answered', 'three, answered'])
  expect(peer.accepted).toHaveLength(1)
  expect(peer.accepted[0]!.remoteId().toString()).toBe(peersOf(pds.ctx)!.nodeId)
  connection.close()
  connection.close()
  expect(await thrownBy(connection.exchange(Buffer.from('four'), limits))).toThrow('exchange with a peer failed: ')
})

test('a peer that does not respond is given up, dialling and exchanging', async () => {
  await using pds = await startPds(enabled)
  const peers = peersOf(pds.ctx)!
  await using peer = await startQuicPeer({ alpn: ALPN, answer: () => new Promise<Uint8Array>(() => {}) })
  await using gone = await startQuicPeer({ alpn: ALPN })
  await gone.close()
  expect(await thrownBy(peers.dial(gone, ALPN, 100))).toThrow('peer not reached: timed out after 100 ms')
  const connection = await peers.dial(peer, ALPN, 5000)
  expect(
    await thrownBy(connection.exchange(Buffer.from('?'), { ...limits, maxBytes: 10, timeoutMillis: 100 })),
  ).toThrow('timed out after 100 ms')
  await peer.accepted[0]!.closed()
})

test('a peer that was killed is soon given up, and one that only takes its time is not', async () => {
  await using pds = await startPds(enabled)
  const peers = peersOf(pds.ctx)!
  const { promise, resolve } = Promise.withResolvers<Uint8Array>()
  await using slow = await startQuicPeer({ alpn: ALPN, answer: () => promise })
  const patient = { ...limits, timeoutMillis: 30_000, silenceMillis: 1000 }
  const answered = (await peers.dial(slow, ALPN, 5000)).exchange(Buffer.from('?'), patient)

  await using process = await startQuicProcess(ALPN)
  const connection = await peers.dial(process, ALPN, 5000)
  expect(text(await connection.exchange(Buffer.from('?'), patient))).toBe('?')
  await process.kill()
  expect(await thrownBy(connection.exchange(Buffer.from('?'), patient))).toThrow('LocallyClosed')
  resolve(Buffer.from('at last'))
  expect(text(await answered)).toBe('at last')
})

test('a peer is refused under another key, for another protocol, and if its answer is too long', async () => {
  await using pds = await startPds(enabled)
  const peers = peersOf(pds.ctx)!
  await using peer = await startQuicPeer({ alpn: ALPN, answer: () => new Uint8Array(11) })
  await using other = await startQuicPeer({ alpn: ALPN })
  expect(await thrownBy(peers.dial({ nodeId: other.nodeId, addresses: peer.addresses }, ALPN, 1000))).toThrow(
    /^peer not reached: [^\n]*$/,
  )
  expect(await thrownBy(peers.dial(peer, 'example/2', 5000))).toThrow(/^peer not reached: [^\n]*$/)
  expect(await thrownBy(peers.dial({ ...peer, nodeId: 'nobody' }, ALPN, 5000))).toThrow(/^peer not reached: [^\n]*$/)
  const connection = await peers.dial(peer, ALPN, 5000)
  expect(await thrownBy(connection.exchange(Buffer.from('?'), { ...limits, maxBytes: 10 }))).toThrow(
    /^exchange with a peer failed: [^\n]*$/,
  )
})

test.each([
  ['a stream', async (connection: Connection) => (await connection.openBi()).send.writeAll([1])],
  ['a stream of one direction', async (connection: Connection) => (await connection.openUni()).writeAll([1])],
  ['a datagram', async (connection: Connection) => connection.sendDatagram([1])],
] as const)('a peer that is to answer and sends %s of its own is disconnected', async (_, sends) => {
  await using pds = await startPds(enabled)
  await using peer = await startQuicPeer({
    alpn: ALPN,
    answer: async (request, { connection }) => {
      if (text(request) === 'first') await sends(connection)
      return request
    },
  })
  const peers = peersOf(pds.ctx)!
  const connection = await peers.dial(peer, ALPN, 5000)
  // The answer may be there before the connection is closed.
  await connection.exchange(Buffer.from('first'), limits).catch(() => null)
  await until(() => peer.accepted[0]!.closeReason() !== null)
  expect(text(await (await peers.dial(peer, ALPN, 5000)).exchange(Buffer.from('second'), limits))).toBe('second')
  // Used to the end: the library closes a connection that nothing refers to any more.
  connection.close()
})

test('stopping the server ends its connections', async () => {
  await using pds = await startPds(enabled)
  await using peer = await startQuicPeer({ alpn: ALPN, answer: () => new Promise<Uint8Array>(() => {}) })
  const connection = await peersOf(pds.ctx)!.dial(peer, ALPN, 5000)
  const waiting = connection
    .exchange(Buffer.from('?'), { ...limits, maxBytes: 10, timeoutMillis: 30_000 })
    .catch(String)
  await until(() => peer.accepted.length === 1)
  await pds.stop()
  expect(await waiting).toContain('exchange with a peer failed: ')
  await peer.accepted[0]!.closed()
})
