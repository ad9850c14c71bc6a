/** What the event log keeps. */
import { expect, test } from 'bun:test'
import type { RepoEvent } from '../../../src/features/data/firehose/firehose.ts'
import type { Did, Tid } from '../../../src/protocol/identifiers.ts'
import { sequence } from '../../support/clients/events.ts'
import { startPds, type TestPds } from '../../support/servers/pds.ts'
import { Subscriber } from '../../support/clients/subscriber.ts'

const did = 'did:plc:aliceaaaaaaaaaaaaaaaaaaa' as Did

const emit = (pds: TestPds, count: number) => sequence(pds, ...Array<RepoEvent>(count).fill({ type: 'identity', did }))
const kept = async (pds: TestPds) => (await pds.rows('repo_seq', {}, ['seq'])).map(({ seq }) => seq)

test('events older than the retention time go, and a cursor before them is told so', async () => {
  await using pds = await startPds({ firehose: { logRetentionSecs: 3600 } })
  await emit(pds, 3)
  pds.clock.advance({ secs: 3601 })
  await emit(pds, 2)
  expect(await pds.runSweep('firehose-gc')).toEqual({ swept: 3, errors: 0 })
  expect(await kept(pds)).toEqual([4, 5])
  const late = new Subscriber(pds.url, '?cursor=2')
  await late.until(3)
  expect(late.messages.map(({ type }) => type)).toEqual(['#info', '#identity', '#identity'])
  const inTime = new Subscriber(pds.url, '?cursor=3')
  await inTime.until(2)
  expect(inTime.seqs).toEqual([4, 5])
  late.close()
  inTime.close()
})

test('a subscriber that retention overtakes while it replays is told where events are missing', async () => {
  await using pds = await startPds({ firehose: { logRetentionSecs: 0, logRetentionCount: 10 } })
  const large: RepoEvent = { type: 'sync', did, rev: '3jzfcijpj2z2a' as Tid, blocks: new Uint8Array(250_000) }
  const seqs: number[] = []
  for (let i = 0; i < 4; i++) seqs.push(...(await sequence(pds, ...Array<RepoEvent>(40).fill(large))))
  const reader = new Subscriber(pds.url, '?cursor=0')
  await reader.opened
  reader.pause()
  await pds.runSweep('firehose-gc')
  reader.resume()
  await reader.untilSeen((messages) => messages.at(-1)?.body.seq === seqs.at(-1))
  const told = reader.messages.findIndex(({ type }) => type === '#info')
  expect(reader.messages[told]).toMatchObject({ body: { name: 'OutdatedCursor' } })
  expect(reader.seqs.slice(0, told)).toEqual(seqs.slice(0, told))
  expect(reader.seqs.slice(told + 1)).toEqual(seqs.slice(-10))
  reader.close()
})

test('the newest event stays however old it is, so that no cursor falls into the future', async () => {
  await using pds = await startPds({ firehose: { logRetentionSecs: 3600 } })
  await emit(pds, 3)
  pds.clock.advance({ days: 30 })
  expect(await pds.runSweep('firehose-gc')).toEqual({ swept: 2, errors: 0 })
  expect(await kept(pds)).toEqual([3])
  await pds.restart()
  expect(await emit(pds, 1)).toEqual([4])
})

test('a clock that was wrong for a while does not make holes', async () => {
  await using pds = await startPds({ firehose: { logRetentionSecs: 3600 } })
  await emit(pds, 1)
  pds.clock.jump({ secs: -7200 })
  await emit(pds, 2)
  pds.clock.jump({ secs: 7200 })
  await emit(pds, 1)
  expect(await pds.runSweep('firehose-gc')).toEqual({ swept: 0, errors: 0 })
})

test('events from while the clock was ahead go with those that follow them, and stay until then', async () => {
  await using pds = await startPds({ firehose: { logRetentionSecs: 3600 } })
  await emit(pds, 1)
  pds.clock.jump({ days: 365 })
  await emit(pds, 2)
  pds.clock.jump({ days: -365 })
  pds.clock.advance({ secs: 3601 })
  await emit(pds, 1)
  expect(await pds.runSweep('firehose-gc')).toEqual({ swept: 1, errors: 0 })
  expect(await kept(pds)).toEqual([2, 3, 4])
  pds.clock.advance({ secs: 3601 })
  await emit(pds, 1)
  expect(await pds.runSweep('firehose-gc')).toEqual({ swept: 3, errors: 0 })
  expect(await kept(pds)).toEqual([5])
})

test('of a bounded count the newest stay, in however many chunks the others go', async () => {
  await using pds = await startPds({ firehose: { logRetentionSecs: 0, logRetentionCount: 10 } })
  await emit(pds, 2500)
  expect(await pds.runSweep('firehose-gc')).toEqual({ swept: 2490, errors: 0 })
  expect(await kept(pds)).toEqual(Array.from({ length: 10 }, (_, i) => 2491 + i))
  expect(await pds.runSweep('firehose-gc')).toEqual({ swept: 0, errors: 0 })
})

test('without bounds, and with an empty log, nothing goes', async () => {
  await using pds = await startPds({ firehose: { logRetentionSecs: 0, logRetentionCount: 0 } })
  expect(await pds.runSweep('firehose-gc')).toEqual({ swept: 0, errors: 0 })
  await emit(pds, 5)
  pds.clock.advance({ days: 1000 })
  expect(await pds.runSweep('firehose-gc')).toEqual({ swept: 0, errors: 0 })
})
