/**
 * The connection to the relay: how it is opened, lost and given up. Against a real relay, with times that are short.
 */
import { expect, test } from 'bun:test'
import { peersOf } from '../../../src/features/push/iroh/iroh.ts'
import {
  RelayClient,
  RelayTooLate,
  relayTiming,
  RelayUnanswered,
  RelayUnreachable,
  RelayWait,
  type RelayTiming,
} from '../../../src/features/push/notifications/relay-client.ts'
import { readRelayAnswer } from '../../../src/protocol/push/relay-frames.ts'
import { startPds } from '../../support/servers/pds.ts'
import { PushRelay } from '../../support/servers/push-relay.ts'
import { startQuicPeer } from '../../support/servers/quic-peer.ts'
import { until } from '../../support/until.ts'
import vectors from '../../vectors/contract/push-relay-frames.json' with { type: 'json' }
import { useWorld } from '../../support/world.ts'
import { errorOf } from '../../support/thrown.ts'

const { pds } = useWorld({ config: { iroh: { enabled: true, discovery: false } } })

const clientTo = ({ nodeId, config }: Pick<PushRelay, 'nodeId' | 'config'>, timing: Partial<RelayTiming> = {}) => {
  const { ctx } = pds
  return new RelayClient({
    peers: () => peersOf(ctx),
    relay: { nodeId, addresses: config.notifications.relayAddresses },
    enrollmentCode: null,
    clock: ctx.clock,
    log: ctx.log,
    timing: { ...relayTiming, ...timing },
  })
}
const drop = { type: 'dropHandle', handle: 'wPaEUCGbsPDUro7ihqEDug' } as const
const ask = (client: RelayClient, goodUntil?: number) =>
  client.alone(() => client.ask(drop, goodUntil === undefined ? {} : { goodUntil }))
const admitted = async () => {
  const relay = await PushRelay.start({ codes: null })
  relay.enrolled.add(peersOf(pds.ctx)!.nodeId)
  return relay
}

test('the relay of these tests takes every published request, with members that are null and with members that are absent', async () => {
  await using relay = await PushRelay.start({ codes: ['example-claim-code'] })
  await using server = await startQuicPeer()
  const connection = await server.dial(
    { nodeId: relay.nodeId, addresses: relay.config.notifications.relayAddresses },
    vectors.alpn,
  )
  const say = async (text: string) => {
    const { send, recv } = await connection.openBi()
    await send.writeAll([...Buffer.from(text)])
    await send.finish()
    return JSON.parse(Buffer.from(await recv.readToEnd(vectors.maxMessageBytes)).toString())
  }
  let handle = ''
  for (const { json, alsoAccepted = [] } of vectors.requests)
    for (const text of [json, ...alsoAccepted]) {
      const answer = await say(text.replaceAll('wPaEUCGbsPDUro7ihqEDug', handle))
      expect(readRelayAnswer(Buffer.from(JSON.stringify(answer)))).toMatchObject({ ok: true })
      if (answer.type === 'handle') handle = answer.handle
      const { type } = JSON.parse(text)
      if (type === 'dropHandle')
        handle = (await say(vectors.requests.find(({ name }) => name === 'register a device token')!.json)).handle
      expect({ text, type: answer.type }).toEqual({
        text,
        type: { enroll: 'ok', registerHandle: 'handle', dropHandle: 'ok', push: 'pushed' }[type as string]!,
      })
      if (type === 'push') expect(answer.outcome).toBe('delivered')
    }
  connection.close(0n, [])
})

test('a burst opens one connection, and is asked one after the other', async () => {
  await using relay = await admitted()
  const client = clientTo(relay)
  let asking = 0
  let most = 0
  const turns = Array.from({ length: 15 }, () =>
    client.alone(async () => {
      most = Math.max(most, ++asking)
      await client.ask(drop)
      asking--
    }),
  )
  await Promise.all(turns)
  expect({ connections: relay.connections, requests: relay.requests.length, most }).toEqual({
    connections: 1,
    requests: 15,
    most: 1,
  })
  client.close()
})

test('a request that takes all its time is given up and not repeated, and the next goes over a new connection', async () => {
  await using relay = await admitted()
  const client = clientTo(relay, { exchangeMillis: 1000 })
  const { promise, resolve } = Promise.withResolvers<void>()
  relay.held = promise
  expect(await errorOf(ask(client))).toBeInstanceOf(RelayUnanswered)
  await until(() => client.state.failure !== null)
  expect(relay.requests).toHaveLength(1)
  expect(client.state).toMatchObject({
    isConnected: false,
    failure: { reason: 'the push relay took too long to answer' },
  })
  relay.held = null
  resolve()
  expect(await ask(client)).toEqual({ type: 'ok' })
  expect(relay.connections).toBe(2)
  expect(client.state).toMatchObject({ isConnected: true, failure: null })
  client.close()
})

test('a request whose connection is lost is repeated once', async () => {
  let lost = 0
  await using peer = await startQuicPeer({
    alpn: 'ezpds/notify/0',
    answer: (_request, { connection }) => {
      if (lost++ > 0) return Buffer.from('{"type":"ok"}')
      connection.close(1n, [])
      return new Promise<Uint8Array>(() => {})
    },
  })
  const client = clientTo({
    nodeId: peer.nodeId,
    config: { notifications: { relayAddresses: [...peer.addresses] } } as PushRelay['config'],
  })
  expect(await ask(client)).toEqual({ type: 'ok' })
  expect({ requests: lost, connections: peer.accepted.length }).toEqual({ requests: 2, connections: 2 })
  client.close()
})

test('a request whose connection is lost twice is not repeated again', async () => {
  let requests = 0
  await using peer = await startQuicPeer({
    alpn: 'ezpds/notify/0',
    answer: (_request, { connection }) => {
      requests++
      connection.close(1n, [])
      return new Promise<Uint8Array>(() => {})
    },
  })
  const client = clientTo({
    nodeId: peer.nodeId,
    config: { notifications: { relayAddresses: [...peer.addresses] } } as PushRelay['config'],
  })
  const fault = await ask(client).catch((error: unknown) => error)
  expect(fault).toBeInstanceOf(RelayUnanswered)
  expect(requests).toBe(2)
  client.close()
})

test('a relay that nobody finds is given up in time, and whoever waits for a turn for too long comes later', async () => {
  await using relay = await admitted()
  await relay.disappear()
  const client = clientTo(relay, { dialMillis: 1000, waitMillis: 20 })
  const [first, second] = await Promise.all([1, 2].map(() => ask(client).catch((error: unknown) => error)))
  expect(first).toBeInstanceOf(RelayUnreachable)
  expect(second).toBeInstanceOf(RelayWait)
  await relay.comeBack()
  expect(await ask(client)).toEqual({ type: 'ok' })
  client.close()
})

test('more than a few do not wait for the relay: they come later too', async () => {
  await using relay = await admitted()
  const client = clientTo(relay)
  const { promise, resolve } = Promise.withResolvers<void>()
  relay.held = promise
  const asked = Array.from({ length: 30 }, () => ask(client).catch((error: unknown) => error))
  const late = await Promise.all(asked.slice(21))
  for (const error of late) expect(error).toBeInstanceOf(RelayWait)
  resolve()
  expect(await Promise.all(asked.slice(0, 21))).toEqual(Array<object>(21).fill({ type: 'ok' }))
  client.close()
})

test('a turn is bounded, whatever the relay does', async () => {
  await using relay = await admitted()
  await relay.disappear()
  const client = clientTo(relay, { turnMillis: 50 })
  expect(await ask(client).catch((error: unknown) => error)).toBeInstanceOf(RelayUnreachable)
  client.close()
})

test('what is too old when the connection is there is not sent', async () => {
  await using relay = await admitted()
  const client = clientTo(relay)
  expect(await ask(client, pds.clock.now()).catch((error: unknown) => error)).toBeInstanceOf(RelayTooLate)
  expect(relay.requests).toEqual([])
  expect(client.state).toMatchObject({ isConnected: true, failure: null })
  client.close()
})

test('after it was closed it opens no connection, and whoever waited is told', async () => {
  await using relay = await admitted()
  const client = clientTo(relay)
  const { promise, resolve } = Promise.withResolvers<void>()
  relay.held = promise
  const waiting = ask(client).catch((error: unknown) => error)
  await until(() => relay.requests.length === 1)
  client.close()
  expect(await waiting).toBeInstanceOf(RelayUnreachable)
  expect(await ask(client).catch((error: unknown) => error)).toBeInstanceOf(RelayUnreachable)
  expect(relay.connections).toBe(1)
  resolve()
})

test('without an endpoint there is no relay', async () => {
  await using relay = await admitted()
  await using quiet = await startPds()
  const client = new RelayClient({
    peers: () => peersOf(quiet.ctx),
    relay: { nodeId: relay.nodeId, addresses: [] },
    enrollmentCode: null,
    clock: quiet.clock,
    log: quiet.ctx.log,
    timing: relayTiming,
  })
  expect(await ask(client).catch((error: unknown) => error)).toBeInstanceOf(RelayUnreachable)
})
