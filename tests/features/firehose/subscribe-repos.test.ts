/** What a subscriber sees: cursors, order, error frames, and no frame left out. */
import { expect, test } from 'bun:test'
import type { RepoEvent } from '../../../src/features/data/firehose/firehose.ts'
import type { Did, Handle, Tid } from '../../../src/protocol/identifiers.ts'
import { sequence } from '../../support/clients/events.ts'
import { Subscriber } from '../../support/clients/subscriber.ts'
import { useWorld } from '../../support/world.ts'

const did = 'did:plc:aliceaaaaaaaaaaaaaaaaaaa' as Did
const identity: RepoEvent = { type: 'identity', did, handle: 'alice.test' as Handle }
const sync = (bytes: number): RepoEvent => ({
  type: 'sync',
  did,
  rev: '3jzfcijpj2z2a' as Tid,
  blocks: new Uint8Array(bytes),
})

const { pds } = useWorld()

const emit = (...events: RepoEvent[]): Promise<number[]> => sequence(pds, ...events)

const subscribe = (query?: string) => new Subscriber(pds.url, query)
const ascending = (from: number, count: number) => Array.from({ length: count }, (_, i) => from + i)

test('a cursor of 0 is taken on an empty log', async () => {
  const reader = subscribe('?cursor=0')
  await reader.opened
  const [seq] = await emit(identity)
  await reader.until(1)
  expect(reader.seqs).toEqual([seq!])
  reader.close()
})

test('without a cursor only what comes next is sent', async () => {
  await emit(identity)
  const reader = subscribe()
  await reader.opened
  // Opening is answered before the head is read; what a second reader is told proves that the first one is set.
  const witness = subscribe(`?cursor=0`)
  await witness.until(1)
  witness.close()
  const seqs = await emit(identity, identity)
  await reader.until(2)
  expect(reader.seqs).toEqual(seqs)
  reader.close()
})

test('whatever happens once a client is connected reaches it, however many connect', async () => {
  const subscribers = Array.from({ length: 40 }, (_, i) => new Subscriber(pds.url, '', `198.51.100.${i}`))
  const heard = await Promise.all(
    subscribers.map(async (subscriber) => {
      await subscriber.opened
      const [seq] = await emit(identity)
      return subscriber.untilSeen((messages) => messages.some(({ body }) => body.seq === seq))
    }),
  )
  expect(heard).toHaveLength(subscribers.length)
  for (const subscriber of subscribers) subscriber.close()
  await Promise.all(subscribers.map(({ closed }) => closed))
})

test('a frame is a header and a body, complete and the same at every replay', async () => {
  const before = Date.now()
  const [seq] = await emit({ type: 'account', did, status: 'deactivated' })
  const [first, second] = [subscribe(`?cursor=${seq! - 1}`), subscribe(`?cursor=${seq! - 1}`)]
  const [one] = await first.until(1)
  const [other] = await second.until(1)
  expect(one).toMatchObject({ type: '#account', body: { seq: seq!, did, active: false, status: 'deactivated' } })
  expect(Date.parse(one!.body.time as string)).toBeGreaterThanOrEqual(before)
  expect(one!.body.time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  expect(other!.bytes).toEqual(one!.bytes)
  first.close()
  second.close()
})

test('an active account is told without a status, an identity without a handle when there is none', async () => {
  const seqs = await emit({ type: 'account', did, status: 'active' }, { type: 'identity', did })
  const reader = subscribe(`?cursor=${seqs[0]! - 1}`)
  const [account, anonymous] = await reader.until(2)
  expect(Object.keys(account!.body).sort()).toEqual(['active', 'did', 'seq', 'time'])
  expect(Object.keys(anonymous!.body).sort()).toEqual(['did', 'seq', 'time'])
  reader.close()
})

test('a replay goes over into the live stream without a gap and without a double', async () => {
  const past = await emit(...Array<RepoEvent>(1200).fill(identity))
  const reader = subscribe(`?cursor=${past[0]! - 1}`)
  const live: number[] = []
  for (let i = 0; i < 40; i++) live.push(...(await emit(identity, identity)))
  await reader.until(past.length + live.length)
  expect(reader.seqs).toEqual([...past, ...live])
  reader.close()
})

test('many subscribers see the same frames in the same order', async () => {
  const readers = Array.from({ length: 20 }, (_, i) => new Subscriber(pds.url, '?cursor=0', `198.51.100.${i}`))
  const seqs = await emit(identity, sync(100), identity)
  const last = seqs.at(-1)!
  for (const reader of readers) {
    while (reader.seqs.at(-1) !== last) await reader.until(reader.messages.length + 1)
    expect(reader.seqs).toEqual(ascending(1, last))
    reader.close()
  }
})

test('a cursor beyond the head is in the future', async () => {
  const [seq] = await emit(identity)
  const reader = subscribe(`?cursor=${seq! + 1}`)
  expect(await reader.closed).toEqual({ code: 1008, reason: 'FutureCursor' })
  expect(reader.messages).toMatchObject([
    { type: 'error', body: { error: 'FutureCursor', message: 'Cursor in the future.' } },
  ])
})

test('a negative cursor asks for everything that is kept', async () => {
  const [seq] = await emit(identity)
  const reader = subscribe('?cursor=-1')
  while (reader.seqs.at(-1) !== seq) await reader.until(reader.messages.length + 1)
  expect(reader.seqs).toEqual(ascending(1, seq!))
  reader.close()
})

test.each(['x', '-x', '1.5', '1e3', '99999999999999999999', '1&cursor=2', '0x10'])(
  'a cursor of %p is refused',
  async (cursor) => {
    const reader = subscribe(`?cursor=${cursor}`)
    expect(await reader.closed).toEqual({ code: 1008, reason: 'InvalidRequest' })
    expect(reader.messages).toMatchObject([{ type: 'error', body: { error: 'InvalidRequest' } }])
  },
)

test('a cursor that retention has overtaken is told so, and gets what is left', async () => {
  const seqs = await emit(identity, identity, identity)
  for (const { seq } of await pds.rows('repo_seq', {}, ['seq']))
    if (seq <= seqs[0]!) await pds.lose('repo_seq', { seq })
  await pds.damage('repo_seq_past', {}, { pruned_through: seqs[0]! })
  const late = subscribe('?cursor=0')
  await late.until(3)
  expect(late.messages[0]).toMatchObject({
    type: '#info',
    body: { name: 'OutdatedCursor', message: 'Requested cursor exceeded limit. Possibly missing events' },
  })
  expect(late.seqs.slice(1)).toEqual(seqs.slice(1))
  late.close()
  const inTime = subscribe(`?cursor=${seqs[0]!}`)
  await inTime.until(2)
  expect(inTime.seqs).toEqual(seqs.slice(1))
  inTime.close()
})

test('events beyond a page in size arrive one by one', async () => {
  const seqs = await emit(sync(1_900_000), identity, sync(1_900_000), sync(700_000), sync(700_000))
  const reader = subscribe(`?cursor=${seqs[0]! - 1}`)
  await reader.until(5)
  expect(reader.seqs).toEqual(seqs)
  reader.close()
})

test('a reader that stops for a while misses nothing', async () => {
  const reader = subscribe()
  await reader.opened
  const first = await emit(identity)
  await reader.until(1)
  reader.pause()
  const seqs: number[] = []
  for (let i = 0; i < 30; i++) seqs.push(...(await emit(...Array<RepoEvent>(20).fill(sync(20_000)))))
  reader.resume()
  await reader.until(1 + seqs.length)
  expect(reader.seqs).toEqual([...first, ...seqs])
  reader.close()
})

test('a reader that never reads is told that it is too slow, and others are not disturbed', async () => {
  const [stuck, healthy] = [subscribe(), subscribe()]
  await Promise.all([stuck.opened, healthy.opened])
  const [first] = await emit(identity)
  await Promise.all([stuck.until(1), healthy.until(1)])
  stuck.pause()
  const big = await emit(...Array<RepoEvent>(40).fill(sync(250_000)))
  await healthy.until(41)
  const small: number[] = []
  for (let i = 0; i < 6; i++) small.push(...(await emit(...Array<RepoEvent>(1000).fill(identity))))
  await healthy.until(1 + big.length + small.length)
  expect(healthy.seqs).toEqual([first!, ...big, ...small])

  stuck.resume()
  expect(await stuck.closed).toEqual({ code: 1008, reason: 'ConsumerTooSlow' })
  expect(stuck.messages.at(-1)).toMatchObject({
    type: 'error',
    body: { error: 'ConsumerTooSlow', message: 'Stream consumer too slow' },
  })
  const seen = stuck.seqs.slice(0, -1)
  expect(seen).toEqual(ascending(first!, seen.length))
  healthy.close()
})

test('a stopping server says so, and a cursor carries over a restart', async () => {
  const [seq] = await emit(identity)
  const reader = subscribe(`?cursor=${seq! - 1}`)
  await reader.until(1)
  await pds.restart()
  expect(await reader.closed).toMatchObject({ code: 1001 })
  const again = subscribe(`?cursor=${seq!}`)
  await again.opened
  const seqs = await emit(identity, identity)
  await again.until(2)
  expect(again.seqs).toEqual(seqs)
  again.close()
})
