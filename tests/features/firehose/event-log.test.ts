/** Numbering of events: strictly ascending whatever happens to transactions, rows and processes. */
import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sequenceEvents, type RepoEvent } from '../../../src/features/data/firehose/firehose.ts'
import { eventsAfter, headSeq, insertEvents } from '../../../src/features/data/firehose/event-log.ts'
import { tailOf } from '../../../src/features/data/firehose/tail.ts'
import { sql } from '../../../src/platform/database/database.ts'
import { migrate } from '../../../src/platform/database/migrations.ts'
import { migrations } from '../../../src/platform/database/embedded-migrations.ts'
import { openSqlite } from '../../../src/platform/database/sqlite.ts'
import { encode } from '../../../src/protocol/cbor.ts'
import { cidOfCbor } from '../../../src/protocol/cid.ts'
import { eventFrame } from '../../../src/protocol/frames.ts'
import type { Did, Handle, Tid } from '../../../src/protocol/identifiers.ts'
import { sequence } from '../../support/clients/events.ts'
import { leastCost } from '../../support/least-cost.ts'
import { startPds, type TestPds } from '../../support/servers/pds.ts'
import { onPostgres } from '../../support/servers/suite.ts'
import { until } from '../../support/until.ts'

const alice = 'did:plc:aliceaaaaaaaaaaaaaaaaaaa' as Did
const bob = 'did:plc:bobbbbbbbbbbbbbbbbbbbbbb' as Did
const identity = (did: Did): RepoEvent => ({ type: 'identity', did, handle: 'alice.test' as Handle })

const sync = (bytes: number): RepoEvent => ({
  type: 'sync',
  did: bob,
  rev: '3jzfcijpj2z2a' as Tid,
  blocks: new Uint8Array(bytes),
})

const rows = (pds: TestPds) => pds.rows('repo_seq', {}, ['seq', 'did', 'event_type'])

test('events of one transaction are numbered in a row, and those of the next follow', async () => {
  await using pds = await startPds()
  expect(await sequence(pds, identity(alice), { type: 'account', did: alice, status: 'active' })).toEqual([1, 2])
  expect(await sequence(pds, identity(bob))).toEqual([3])
})

test('a transaction that fails leaves neither a row nor a hole, and its neighbours in the group keep theirs', async () => {
  await using pds = await startPds()
  const failing = pds.ctx.db.transaction(async (tx) => {
    await sequenceEvents(pds.ctx, tx, [identity(alice)])
    throw new Error('changed its mind')
  })
  const outcomes = await Promise.allSettled([sequence(pds, identity(alice)), failing, sequence(pds, identity(bob))])
  expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  expect((await rows(pds)).map(({ seq, did }) => [seq, did])).toEqual([
    [1, alice],
    [2, bob],
  ])
})

test('the event of a deletion takes the earlier events of the account out of the log', async () => {
  await using pds = await startPds()
  await sequence(pds, identity(alice), identity(bob), identity(alice))
  expect(await sequence(pds, { type: 'account', did: alice, status: 'deleted' })).toEqual([4])
  expect((await rows(pds)).map(({ seq }) => seq)).toEqual([2, 4])
})

test('numbers go on where they were after a restart, even when no row is left', async () => {
  await using pds = await startPds()
  await sequence(pds, identity(alice), identity(alice))
  await pds.restart()
  expect(await sequence(pds, identity(alice))).toEqual([3])
  await pds.damage('repo_seq_past', {}, { spent_through: 3 })
  await pds.lose('repo_seq')
  await pds.restart()
  expect(await headSeq(pds.ctx.db)).toBe(3)
  expect(await sequence(pds, identity(alice))).toEqual([4])
})

test('a page is one statement, and what is large begins one', async () => {
  await using pds = await startPds()
  const { db } = pds.ctx
  await sequence(pds, identity(alice), sync(100_000), sync(10_000), sync(100_000), sync(100_000), identity(alice))
  const pages = async () => {
    const read: number[][] = []
    for (let cursor = 0; cursor < 6; cursor = read.at(-1)!.at(-1)!)
      read.push((await eventsAfter(db, cursor)).map(({ seq }) => seq))
    return read
  }
  expect(await leastCost(db, async () => expect(await pages()).toEqual([[1], [2, 3], [4], [5, 6]]))).toBe(4)
})

/** Follow the tail. Resolves when it has found the end of the log; `told` are the heads it has told of since. */
async function follow({ ctx }: TestPds) {
  const told: number[] = []
  const tail = tailOf(ctx)
  const begun = Promise.withResolvers<void>()
  const leave = tail.follow(() => {
    told.push(tail.head)
    begun.resolve()
  })
  await begun.promise
  told.length = 0
  return { tail, told, leave }
}

test('who follows the tail is told of events when they are durable, and nobody reads the log for that', async () => {
  await using pds = await startPds()
  const { db } = pds.ctx
  const { tail, told, leave } = await follow(pds)
  const whenWritten = await db.transaction(async (tx) => {
    await sequenceEvents(pds.ctx, tx, [identity(alice), identity(bob)])
    return { told: [...told], statements: db.counters.statements }
  })
  expect(whenWritten.told).toEqual([])
  // On PostgreSQL, the sequencer says that there is something to read.
  if (onPostgres) await until(() => tail.head === 2)
  else expect([told, whenWritten.statements]).toEqual([[2], db.counters.statements])
  expect(tail.after(0)!).toMatchObject(await eventsAfter(db, 0))
  leave()
})

test('of a transaction that fails the tail hears nothing, and of its neighbours in their order', async () => {
  await using pds = await startPds()
  const { tail, told, leave } = await follow(pds)
  const failing = pds.ctx.db.transaction(async (tx) => {
    await sequenceEvents(pds.ctx, tx, [identity(alice)])
    throw new Error('changed its mind')
  })
  await Promise.allSettled([sequence(pds, identity(alice)), failing, sequence(pds, identity(bob))])
  await until(() => told.at(-1) === 2)
  if (!onPostgres) expect(told).toEqual([1, 2])
  expect(tail.after(0)!).toMatchObject(await eventsAfter(pds.ctx.db, 0))
  leave()
})

test('what was written past the tail is read from the log with the next event', async () => {
  await using pds = await startPds()
  const { db } = pds.ctx
  const { tail, leave } = await follow(pds)
  await db.transaction((tx) =>
    insertEvents(tx, [{ seq: 1, type: 'identity', did: bob, sequencedAt: 0, frame: new Uint8Array([1]) }]),
  )
  await sequence(pds, identity(alice))
  await until(() => tail.head === 2)
  expect(tail.after(0)!).toMatchObject(await eventsAfter(db, 0))
  leave()
})

test('events of a log from before frames were stored become what subscribers get', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-log-'))
  const db = openSqlite({ path: join(folder, 'old.db') })
  const did = 'did:plc:alice' as Did
  const events: RepoEvent[] = [
    {
      type: 'commit',
      did,
      commit: cidOfCbor(new Uint8Array([0xa0])),
      rev: '3kkkkkkkkkk22' as Tid,
      since: null,
      blocks: new Uint8Array([0, 1, 0xff]),
      ops: [],
      prevData: null,
    },
    { type: 'sync', did, rev: '3kkkkkkkkkk22' as Tid, blocks: new Uint8Array([0, 0]) },
    { type: 'identity', did, handle: 'alice.test' as Handle },
    { type: 'account', did, status: 'deleted' },
  ]
  await migrate(
    db,
    migrations.filter(({ number }) => number < 52),
    0,
  )
  const headerBytes = (event: RepoEvent) => encode({ op: 1, t: `#${event.type}` }).length
  for (const [i, event] of events.entries()) {
    const body = eventFrame(event, i + 1, 0).slice(headerBytes(event))
    await db.run(
      sql`INSERT INTO repo_seq (seq, did, event_type, event, sequenced_at) VALUES (${i + 1}, ${did}, ${event.type}, ${body}, 0)`,
    )
  }
  await migrate(db, migrations, 0)
  expect(await eventsAfter(db, 0)).toEqual(
    events.map((event, i) => ({ seq: i + 1, did, type: event.type, frame: eventFrame(event, i + 1, 0) })),
  )
  await db.close()
  rmSync(folder, { recursive: true })
})
