/** Many subscribers, and such that do not read: how many there may be, and what each may hold. */
import { beforeAll, describe, expect, test } from 'bun:test'
import type { RepoEvent } from '../../../src/features/data/firehose/firehose.ts'
import { tailOf } from '../../../src/features/data/firehose/tail.ts'
import type { Did, Tid } from '../../../src/protocol/identifiers.ts'
import { sequence } from '../../support/clients/events.ts'
import { raw, request } from '../../support/clients/http.ts'
import { startPds, type TestPds } from '../../support/servers/pds.ts'
import { Subscriber } from '../../support/clients/subscriber.ts'
import { useWorld } from '../../support/world.ts'
import { eventLoopTurns, until } from '../../support/until.ts'
import { atOneNode } from '../../support/turns.ts'

const PATH = '/xrpc/com.atproto.sync.subscribeRepos'
const UPGRADE = {
  connection: 'Upgrade',
  upgrade: 'websocket',
  'sec-websocket-version': '13',
  'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
}
const did = 'did:plc:aliceaaaaaaaaaaaaaaaaaaa' as Did
const sync = (bytes: number): RepoEvent => ({
  type: 'sync',
  did,
  rev: '3jzfcijpj2z2a' as Tid,
  blocks: new Uint8Array(bytes),
})

/** The whole answer to a request for an upgrade, which is refused. */
const refusal = async ({ url }: TestPds, address: string, headers: Record<string, string> = UPGRADE) => {
  const lines = Object.entries({ host: new URL(url).host, 'x-forwarded-for': address, ...headers }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  )
  const isWhole = (received: string) => {
    const [head, ...rest] = received.split('\r\n\r\n')
    return rest.length > 0 && rest.join('').length >= Number(/content-length: (\d+)/i.exec(head!)?.[1] ?? Infinity)
  }
  const answer = await raw(url, `GET ${PATH} HTTP/1.1\r\n${lines.join('')}\r\n`, 10_000, isWhole)
  return {
    status: Number(answer.split(' ')[1]),
    retryAfter: /retry-after: (\d+)/i.exec(answer)?.[1],
    body: answer.slice(answer.indexOf('\r\n\r\n') + 4),
  }
}
const join = async ({ url }: TestPds, address: string) => {
  const subscriber = new Subscriber(url, '', address)
  await subscriber.opened
  return subscriber
}
const leave = async (subscribers: Subscriber[]) => {
  for (const subscriber of subscribers) subscriber.close()
  await Promise.all(subscribers.map(({ closed }) => closed))
}

describe('places', () => {
  const { pds } = useWorld({
    config: { firehose: { maxSubscribers: 12 } },
    options: { alone: 'each node has places of its own' },
  })

  test.each([
    ['an address', () => '198.51.100.7'],
    ['a network of IPv6', (i: number) => `2001:db8:0:7::${i + 1}`],
  ])('%s has ten, and gets one again when one of its clients leaves', async (_whose, address) => {
    const clients = await Promise.all(Array.from({ length: 10 }, (_unused, i) => join(pds, address(i))))
    const { status, retryAfter, body } = await refusal(pds, address(11))
    expect([status, retryAfter]).toEqual([429, '60'])
    expect(body).toMatch(/"error":"RateLimitExceeded".*10 at most/)
    await leave([clients.pop()!])
    clients.push(await join(pds, address(12)), await join(pds, '203.0.113.1'))
    expect((await refusal(pds, address(13))).status).toBe(429)
    await leave(clients)
  })

  test('a /48 network has a hundred, however many networks it is divided into', async () => {
    await using large = await startPds({ firehose: { maxSubscribers: 200 } })
    using _ = atOneNode(large, 'each node counts for itself')
    const clients = await Promise.all(Array.from({ length: 100 }, (_, i) => join(large, `2001:db8:1:${i % 20}::1`)))
    const { status, body } = await refusal(large, '2001:db8:1:ffff::1')
    expect([status, body]).toEqual([429, expect.stringContaining('from 2001:db8:1::/48: 100 at most')])
    clients.push(await join(large, '2001:db8:2::1'))
    await leave(clients)
  })

  test('an address has as many as there are where rate limits are off', async () => {
    await using open = await startPds({ rateLimit: { enabled: false }, firehose: { maxSubscribers: 12 } })
    using _ = atOneNode(open, 'each node counts for itself')
    const clients = await Promise.all(Array.from({ length: 12 }, () => join(open, '198.51.100.7')))
    expect((await refusal(open, '198.51.100.7')).status).toBe(503)
    await leave(clients)
  })

  test('all together have no more than there are', async () => {
    const clients = await Promise.all(Array.from({ length: 12 }, (_, i) => join(pds, `198.51.100.${i}`)))
    expect(await refusal(pds, '203.0.113.1')).toMatchObject({
      status: 503,
      retryAfter: '60',
      body: expect.stringContaining('"error":"ServiceUnavailable"'),
    })
    await leave(clients)
    await leave([await join(pds, '203.0.113.1')])
  })

  test('none is held by an upgrade that fails, a cursor that is refused, or a connection that is gone at once', async () => {
    const address = '198.51.100.8'
    for (let i = 0; i < 6; i++) {
      for (const [name, value] of [
        ['sec-websocket-key', ''],
        ['sec-websocket-version', '8'],
      ] as const)
        expect((await refusal(pds, address, { ...UPGRADE, [name]: value })).status).toBeGreaterThanOrEqual(400)
      await new Subscriber(pds.url, '?cursor=x', address).closed
      await raw(
        pds.url,
        `GET ${PATH} HTTP/1.1\r\nhost: ${new URL(pds.url).host}\r\nx-forwarded-for: ${address}\r\n${Object.entries(
          UPGRADE,
        )
          .map(([name, value]) => `${name}: ${value}\r\n`)
          .join('')}\r\n`,
        10,
      )
    }
    await leave(await Promise.all(Array.from({ length: 10 }, () => join(pds, address))))
  })

  test('0 takes a bound away', async () => {
    await using open = await startPds({ firehose: { maxSubscribers: 0, maxSubscribersPerAddress: 0 } })
    const clients = await Promise.all(Array.from({ length: 30 }, () => join(open, '198.51.100.7')))
    expect(clients).toHaveLength(30)
    await leave(clients)
  })
})

describe('those who do not read', () => {
  const { pds } = useWorld({
    config: { firehose: { stalledSecs: 1 } },
    options: { alone: 'each node follows its own subscribers' },
  })
  const seqs: number[] = []
  beforeAll(async () => {
    for (let i = 0; i < 15; i++) seqs.push(...(await sequence(pds, ...Array<RepoEvent>(100).fill(sync(20_000)))))
  })

  test.each(['?cursor=0', ''])('whoever takes nothing is sent away, pongs or not (%p)', async (query) => {
    const stuck = new Subscriber(pds.url, query)
    await stuck.opened
    stuck.pause()
    if (query === '') await sequence(pds, ...Array<RepoEvent>(400).fill(sync(20_000)))
    await until(() => tailOf(pds.ctx).followers > 0)
    await until(() => {
      stuck.pong()
      return tailOf(pds.ctx).followers === 0
    })
    stuck.resume()
    expect(await stuck.closed).toEqual({ code: 1008, reason: 'ConsumerTooSlow' })
    expect(stuck.messages.at(-1)).toMatchObject({ type: 'error', body: { error: 'ConsumerTooSlow' } })
  })

  test('whoever replays in gulps gets every event, once and in order', async () => {
    const reader = new Subscriber(pds.url, '?cursor=0')
    for (let count = 1; count < seqs.length; count += 50) {
      await reader.until(count)
      reader.pause()
      await eventLoopTurns(1)
      reader.resume()
    }
    await reader.until(seqs.length)
    expect(reader.seqs.slice(0, seqs.length)).toEqual(seqs)
    reader.close()
  })
})

test('a frame of megabytes waits for few at a time, and those who do not read it make room for others', async () => {
  await using pds = await startPds({}, { alone: 'each node follows its own subscribers' })
  const stuck = await Promise.all(Array.from({ length: 40 }, (_, i) => join(pds, `198.51.${i}.1`)))
  const reader = await join(pds, '203.0.113.1')
  for (const subscriber of stuck) subscriber.pause()
  await until(() => tailOf(pds.ctx).followers === 41)
  const seqs: number[] = []
  for (let i = 0; i < 4; i++) seqs.push(...(await sequence(pds, sync(1_900_000))))
  await reader.until(4)
  expect(reader.seqs).toEqual(seqs)
  expect(tailOf(pds.ctx).followers).toBeGreaterThan(32)
  // 8 have a place, and 24 more are waited for.
  await until(() => tailOf(pds.ctx).followers <= 33)
  await sequence(pds, sync(10))
  await reader.until(5)
  await leave([reader])
})

test('however many replay the log, one page of it is read in a turn of the event loop', async () => {
  await using pds = await startPds(
    { rateLimit: { enabled: false } },
    { alone: 'the statements of one node are counted' },
  )
  for (let i = 0; i < 4; i++) await sequence(pds, ...Array<RepoEvent>(100).fill(sync(30_000)))
  const subscribers = await Promise.all(
    Array.from({ length: 12 }, async () => {
      const subscriber = new Subscriber(pds.url, '?cursor=0')
      await subscriber.opened
      subscriber.pause()
      return subscriber
    }),
  )
  await eventLoopTurns(10)
  for (const subscriber of subscribers) subscriber.resume()
  const { counters } = pds.ctx.db
  let most = 0
  for (let before = counters.statements; subscribers.some(({ messages }) => messages.length < 400);) {
    await new Promise((resolve) => setImmediate(resolve))
    most = Math.max(most, counters.statements - before)
    before = counters.statements
  }
  // The tail reads too, and so does the server, which looks for what it has to do.
  expect(most).toBeLessThanOrEqual(4)
  await leave(subscribers)
})

test('whoever takes no answers has no more pings answered, and whoever takes them has', async () => {
  await using pds = await startPds({}, { alone: 'each node follows its own subscribers' })
  const [stuck, talker] = [await Subscriber.open(pds.url), await Subscriber.open(pds.url)]
  await until(() => tailOf(pds.ctx).followers === 2)
  stuck.pause()
  // The buffers of the system take some ten thousand answers.
  for (let rounds = 0; rounds < 150 && tailOf(pds.ctx).followers === 2; rounds++) {
    for (const subscriber of [stuck, talker]) subscriber.ping(1000)
    await eventLoopTurns(10)
  }
  expect(tailOf(pds.ctx).followers).toBe(1)
  await sequence(pds, sync(10))
  await talker.until(1)
  await leave([talker])
})

test('a subscriber has nothing to say: what is longer than a kibibyte ends it', async () => {
  await using pds = await startPds()
  const talker = new Subscriber(pds.url)
  await talker.opened
  talker.say(new Uint8Array(1024))
  await sequence(pds, sync(10))
  await talker.until(1)
  talker.say(new Uint8Array(1025))
  expect((await talker.closed).code).not.toBe(1000)
})

test('no other endpoint becomes a socket', async () => {
  await using pds = await startPds()
  for (const path of ['/', '/xrpc/_health', '/xrpc/com.atproto.server.describeServer'])
    expect((await request(`${pds.url}${path}`, { headers: UPGRADE })).status).toBe(200)
})
