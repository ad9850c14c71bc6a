/**
 * Several nodes on one PostgreSQL database, whichever database the suite runs on: who numbers their events, and how.
 */
import { expect, test } from 'bun:test'
import { SQL } from 'bun'
import {
  eventsAfter,
  headSeq,
  insertEvents,
  logLock,
  pruneEvents,
  raiseSeq,
} from '../../../src/features/data/firehose/event-log.ts'
import { sequenceEvents, type RepoEvent } from '../../../src/features/data/firehose/firehose.ts'
import { Floor, EVENT_NUMBERS } from '../../../src/features/data/firehose/sequencer.ts'
import {
  batchOf,
  insertUnnumbered,
  writtenSeq,
  type Batch,
} from '../../../src/features/data/firehose/sequencer-store.ts'
import { sql, type Sql, type Tx } from '../../../src/platform/database/database.ts'
import { readerOn, send, statementOf } from '../../../src/platform/database/postgres-statements.ts'
import { decode, decodeFirst } from '../../../src/protocol/cbor.ts'
import { eventFrame } from '../../../src/protocol/frames.ts'
import type { Did, Handle, Tid } from '../../../src/protocol/identifiers.ts'
import { createAccount, type TestAccount } from '../../support/clients/account.ts'
import { leastCost } from '../../support/least-cost.ts'
import { startCluster } from '../../support/servers/cluster.ts'
import { Consumer } from '../../support/clients/consumer.ts'
import { startCrawler } from '../../support/servers/crawler.ts'
import { allNumbered, sequence } from '../../support/clients/events.ts'
import { followRepo } from '../../support/history.ts'
import { bearer } from '../../support/clients/http.ts'
import { ADMIN_TOKEN } from '../../support/servers/config.ts'
import type { TestPds } from '../../support/servers/pds.ts'
import { testDatabase } from '../../support/servers/postgres.ts'
import { Subscriber } from '../../support/clients/subscriber.ts'
import { until } from '../../support/until.ts'
import { setUp } from '../../support/set-up.ts'
import { useCluster } from '../../support/cluster-world.ts'

const dids = ['a', 'b', 'c'].map((letter) => `did:plc:${letter.repeat(24)}` as Did)
const [alice, bob] = dids as [Did, Did]
const identity = (did: Did, name = 'some'): RepoEvent => ({ type: 'identity', did, handle: `${name}.test` as Handle })
const sync = (did: Did): RepoEvent => ({
  type: 'sync',
  did,
  rev: '3jzfcijpj2z2a' as Tid,
  blocks: new Uint8Array(5000).fill(7),
})

const {
  cluster,
  nodes: [one, other],
} = useCluster(2)
const admin = setUp(() => new SQL({ adapter: 'postgres', url: cluster.databaseUrl, max: 1 }))

const collection = 'com.example.note'
const write = async (at: TestPds, { did, accessJwt }: TestAccount, text: string) => {
  const response = await fetch(`${at.url}/xrpc/com.atproto.repo.createRecord`, {
    method: 'POST',
    headers: { authorization: `Bearer ${accessJwt}`, 'content-type': 'application/json' },
    body: JSON.stringify({ repo: did, collection, record: { $type: collection, text } }),
  })
  expect(response.status).toBe(200)
}

const holders = async () => {
  const pages = await Promise.all([one, other].map(({ ctx }) => ctx.metrics.render()))
  return pages.map((page) => Number(/^firehose_numberer (\d)$/m.exec(page)?.[1]))
}

const fenceOf = async () => {
  const leases = await one.ctx.db.cluster!.leases().catch(() => [])
  return leases.find(({ name }) => name === EVENT_NUMBERS)?.fence ?? 0
}

/** A transaction on a connection of its own, which is rolled back at the end unless the test commits it. */
async function openTransaction(databaseUrl = cluster.databaseUrl) {
  const connection = new SQL({ adapter: 'postgres', url: databaseUrl, max: 1, bigint: true })
  const ask = (query: Sql) => send(connection, statementOf(query))
  await connection.unsafe('BEGIN')
  const tx: Tx = {
    ...readerOn(ask),
    run: async (query) => (await ask(query)).count,
    afterCommit: () => undefined,
    turn: () => Promise.resolve(),
    known: new Map(),
  }
  const commit = async () => void (await connection.unsafe('COMMIT'))
  return { tx, commit, [Symbol.asyncDispose]: () => connection.close({ timeout: 0 }) }
}

/** Handles in the log after a number, which say which event it is. */
const namesAfter = async (seq: number) => {
  const events = await eventsAfter(one.ctx.db, seq, 1000)
  return events.map(({ frame }) => (decode(decodeFirst(frame).rest) as { handle: string }).handle.split('.')[0])
}

test('one node numbers the events of all, and every subscriber of every node sees each once, in one order', async () => {
  await until(async () => (await holders()).toSorted().join() === '0,1')
  const accounts = await Promise.all([
    createAccount(one, 'ann'),
    createAccount(one, 'ben'),
    createAccount(other, 'cid'),
  ])
  const subscribers = [one, other].map(({ url }) => new Subscriber(url, '?cursor=0'))
  await Promise.all(Array.from({ length: 60 }, (_, i) => write([one, other][i % 2]!, accounts[i % 3]!, `note ${i}`)))
  const [seen, seenElsewhere] = await Promise.all(subscribers.map((subscriber) => subscriber.until(3 * 4 + 60)))
  expect(seen!.map(({ bytes }) => bytes.toString('hex'))).toEqual(
    seenElsewhere!.map(({ bytes }) => bytes.toString('hex')),
  )
  const seqs = subscribers[0]!.seqs
  expect(seqs).toEqual(seqs.map((_, i) => seqs[0]! + i))
  for (const { did } of accounts) {
    const { body } = await accounts[0]!.call(`com.atproto.sync.getLatestCommit?did=${did}`)
    expect(await followRepo(seen!, did)).toMatchObject({ commits: 21, head: body.cid })
  }
  for (const subscriber of subscribers) subscriber.close()
})

test('a consumer goes on at another node with the cursor of the first', async () => {
  const dan = await createAccount(one, 'dan')
  const texts = Array.from({ length: 10 }, (_, i) => `dan ${i}`)
  const start = await writtenSeq(one.ctx.db)
  const created = (consumer: Consumer) =>
    consumer.events.flatMap((event) => (event.event === 'create' ? [(event.record as { text?: string }).text!] : []))
  const first = new Consumer(one.url, { startCursor: start })
  for (const text of texts.slice(0, 5)) await write(other, dan, text)
  await first.until(() => created(first).length === 5)
  await first.stop()
  const second = new Consumer(other.url, { startCursor: first.runner.getCursor(), plcUrl: one.url })
  for (const text of texts.slice(5)) await write(one, dan, text)
  await second.until(() => created(second).length === 5)
  await second.stop()
  expect([...created(first), ...created(second)]).toEqual(texts)
  expect([...first.faults, ...second.faults]).toEqual([])
})

test('what is committed late gets its number then, and keeps nobody waiting', async () => {
  const head = await headSeq(one.ctx.db)
  await using late = await openTransaction()
  await insertUnnumbered(late.tx, [identity(alice, 'late')], 0)
  await sequence(other, identity(bob, 'early'))
  expect(await namesAfter(head)).toEqual(['early'])
  for (let i = 0; i < 5; i++) await sequence(one, identity(bob, 'between'))
  await late.commit()
  await until(async () => (await namesAfter(head)).at(-1) === 'late')
  expect(await namesAfter(head)).toEqual(['early', ...Array<string>(5).fill('between'), 'late'])
})

test('the events of one account are numbered in the order of commits, and what is rolled back leaves nothing', async () => {
  const head = await headSeq(one.ctx.db)
  await using first = await openTransaction()
  await using second = await openTransaction()
  {
    await using third = await openTransaction()
    await insertUnnumbered(third.tx, [identity(bob, 'third')], 0)
  }
  await insertUnnumbered(first.tx, [identity(alice, 'first')], 0)
  let isWritten = false
  const writing = insertUnnumbered(second.tx, [identity(alice, 'second')], 0).then(() => (isWritten = true))
  await allNumbered(one)
  expect(isWritten).toBe(false)
  await first.commit()
  await writing
  await second.commit()
  await until(async () => (await namesAfter(head)).length === 2)
  expect(await namesAfter(head)).toEqual(['first', 'second'])
})

test('a frame that the database has numbered is the frame of its event', async () => {
  const events: RepoEvent[] = [
    identity(alice),
    { type: 'identity', did: bob },
    sync(alice),
    { type: 'account', did: bob, status: 'active' },
  ]
  await using transaction = await openTransaction()
  const { tx } = transaction
  for (const seq of [1, 23, 24, 255, 256, 65_535, 65_536, 2 ** 32 - 1, 2 ** 32]) {
    await tx.run(sql`DELETE FROM repo_seq`)
    await tx.run(sql`UPDATE repo_seq_past SET spent_through = ${seq - 1}`)
    await insertUnnumbered(tx, events, 0)
    const lease = { name: EVENT_NUMBERS, fence: await fenceOf() }
    expect(await tx.get(batchOf({ lease, floor: 0, maxEvents: 100, sequencedAt: 1_700_000_000_123 }))).toMatchObject({
      isHeld: true,
      events: events.length,
    })
    expect(await eventsAfter(tx, 0)).toEqual(
      events.map((event, i) => ({
        seq: seq + i,
        did: event.did,
        type: event.type,
        frame: eventFrame(event, seq + i, 1_700_000_000_123),
      })),
    )
  }
})

test('the event of a deletion takes the earlier events of the account with it, numbered or not', async () => {
  const head = await headSeq(one.ctx.db)
  await sequence(one, identity(alice, 'old'), identity(bob, 'stays'))
  const gone: RepoEvent = { type: 'account', did: alice, status: 'deleted' }
  await sequence(other, identity(alice, 'just'), gone, identity(bob, 'after'))
  const rows = await one.ctx.db.all<{ seq: number; type: string }>(
    sql`SELECT seq - ${head} AS seq, event_type AS type FROM repo_seq WHERE did IN (${alice}, ${bob}) AND seq > ${head} ORDER BY seq`,
  )
  expect(rows).toEqual([
    { seq: 2, type: 'identity' },
    { seq: 4, type: 'account' },
    { seq: 5, type: 'identity' },
  ])
})

test('from the answer on, nobody is sent the events of a deleted account, though its deletion has no number yet', async () => {
  const [gone, stays] = [await createAccount(one, 'gone'), await createAccount(one, 'stays')]
  await allNumbered(one)
  const start = await headSeq(one.ctx.db)
  const about = ({ messages }: Subscriber, { did }: TestAccount) =>
    messages.filter(({ body }) => (body['repo'] ?? body['did']) === did).map(({ type }) => type)
  // While somebody follows, a node keeps the newest events.
  const followers = await Promise.all(
    [one, other].map(async ({ url }) => {
      const follower = new Subscriber(url, `?cursor=${start}`)
      await follower.opened
      return follower
    }),
  )
  await write(one, gone, 'numbered')
  await write(one, stays, 'numbered')
  for (const follower of followers) await follower.until(2)

  await using sequencer = await openTransaction()
  // Batches wait for this row.
  await sequencer.tx.get(sql`SELECT 1 FROM lease WHERE name = ${EVENT_NUMBERS} FOR UPDATE`)
  await write(other, gone, 'not numbered')
  const latecomer = new Subscriber(one.url)
  await latecomer.opened
  const deleted = await fetch(`${one.url}/xrpc/com.atproto.admin.deleteAccount`, {
    method: 'POST',
    headers: { ...bearer(ADMIN_TOKEN), 'content-type': 'application/json' },
    body: JSON.stringify({ did: gone.did }),
  })
  expect(deleted.status).toBe(200)
  const seenAt = async ({ url }: TestPds) => {
    const subscriber = new Subscriber(url, `?cursor=${start}`)
    await subscriber.untilSeen(() => about(subscriber, stays).length > 0)
    subscriber.close()
    return about(subscriber, gone)
  }
  expect(await seenAt(one)).toEqual([])
  // The other node hears of it by a notification.
  await until(async () => (await seenAt(other)).length === 0)

  await sequencer.commit()
  await write(one, stays, 'afterwards')
  for (const follower of followers) {
    await follower.untilSeen(() => about(follower, stays).length === 2)
    expect(about(follower, gone)).toEqual(['#commit', '#account'])
    follower.close()
  }
  // What it had not to be told of was counted when it came.
  await latecomer.untilSeen(() => about(latecomer, stays).length === 1)
  expect(about(latecomer, gone)).toEqual(['#account'])
  latecomer.close()
})

test('numbers go on above a raised number, above those of an earlier version, and when all rows are gone', async () => {
  const { db } = one.ctx
  const raised = (await headSeq(db)) + 1000
  await db.transaction((tx) => raiseSeq(tx, raised))
  expect(await sequence(other, identity(bob))).toEqual([raised + 1])
  await db.transaction((tx) =>
    insertEvents(tx, [{ seq: raised + 50, type: 'identity', did: bob, sequencedAt: 0, frame: new Uint8Array([1]) }]),
  )
  expect(await sequence(one, identity(bob))).toEqual([raised + 51])
  await db.transaction((tx) => pruneEvents(tx, raised + 51, 10_000))
  expect(await db.get(sql`SELECT count(*) AS count FROM repo_seq`)).toEqual({ count: 0 })
  expect(await sequence(other, identity(bob))).toEqual([raised + 52])
})

test('without a cursor, a subscriber does not see what was written before it came, and has no number yet', async () => {
  await using late = await openTransaction()
  // Batches wait for this row.
  await late.tx.get(sql`SELECT 1 FROM repo_seq_past FOR UPDATE`)
  await one.ctx.db.transaction((tx) => insertUnnumbered(tx, [identity(alice), identity(alice)], 0))
  const subscriber = new Subscriber(other.url)
  await subscriber.opened
  await until(() => late.tx.get(sql`SELECT 1 FROM repo_seq_past`).then(() => true))
  const head = await writtenSeq(one.ctx.db)
  await late.commit()
  await sequence(one, identity(bob))
  await subscriber.until(1)
  expect(subscriber.seqs).toEqual([head + 1])
  subscriber.close()
})

test('only the node with the lease asks crawlers', async () => {
  await using crawler = startCrawler()
  await using public_ = await startCluster(2, {
    crawlers: { urls: [crawler.url] },
    publicUrl: 'https://pds.example.com',
  })
  await crawler.until(1)
  for (const node of [...public_.nodes, ...public_.nodes]) await sequence(node, identity(alice))
  expect(crawler.requests).toEqual(['pds.example.com'])
})

test('a node that was cut off numbers nothing more, and another goes on', async () => {
  const fence = await fenceOf()
  await admin.unsafe(
    "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1 AND pid <> pg_backend_pid()",
  )
  await until(async () => (await fenceOf()) > fence)
  // What the holder before may have been about to do.
  await using late = await openTransaction()
  await insertUnnumbered(late.tx, [identity(alice)], 0)
  const stale = await late.tx.get<Batch>(
    batchOf({ lease: { name: EVENT_NUMBERS, fence }, floor: 0, maxEvents: 100, sequencedAt: 0 }),
  )
  expect(stale).toMatchObject({ isHeld: false, events: 0 })
  const head = await headSeq(one.ctx.db)
  expect(await sequence(one, identity(bob))).toEqual([head + 1])
  expect(await sequence(other, identity(bob))).toEqual([head + 2])
})

test('the floor of ids rises only when nothing can appear below it', () => {
  const floor = new Floor()
  const after = (lastId: number, xmin: number, xid: number) => {
    floor.after({ lastId, xmin, xid })
    return floor.id
  }
  // Transaction 120 has written an event with an id below 10, and stays open.
  expect(after(10, 110, 110)).toBe(0)
  expect(after(20, 120, 130)).toBe(0)
  expect(after(20, 120, 140)).toBe(0)
  // Its event was in this batch, or there was none.
  expect(after(5, 130, 150)).toBe(5)
  expect(after(30, 140, 160)).toBe(5)
  expect(after(40, 159, 170)).toBe(5)
  expect(after(50, 160, 180)).toBe(5)
  // No transaction ran beside this batch.
  expect(after(60, 190, 190)).toBe(50)
  floor.after({ lastId: null, xmin: 300, xid: 300 })
  expect(floor.id).toBe(50)
})

test('the floor stays below an event that is committed late, however young its transaction is', async () => {
  const { databaseUrl, drop } = await testDatabase()
  const floor = new Floor()
  const batch = async () => {
    await using own = await openTransaction(databaseUrl)
    const found = await own.tx.get<Batch>(batchOf({ lease: null, floor: floor.id, maxEvents: 100, sequencedAt: 0 }))
    await own.commit()
    floor.after(found!)
    return found!.events
  }
  const write = async (name: string) => {
    await using own = await openTransaction(databaseUrl)
    await insertUnnumbered(own.tx, [identity(bob, name)], 0)
    await own.commit()
  }
  {
    await using early = await openTransaction(databaseUrl)
    await using late = await openTransaction(databaseUrl)
    await early.tx.get(sql`SELECT pg_current_xact_id() IS NULL`)
    // The second of the transactions has the first of the events, and is younger than all that have ended.
    await insertUnnumbered(late.tx, [identity(alice, 'late')], 0)
    await insertUnnumbered(early.tx, [identity(bob, 'early')], 0)
    await early.commit()
    expect(await batch()).toBe(1)
    for (let i = 0; i < 3; i++) {
      await write('between')
      expect(await batch()).toBe(1)
    }
    await late.commit()
  }
  expect(await batch()).toBe(1)
  for (let i = 0; i < 3; i++) {
    await write('after')
    expect(await batch()).toBe(1)
  }
  expect(floor.id).toBeGreaterThan(0)
  await drop()
})

test('no transaction of a writer asks for a number, whatever is written', async () => {
  const eve = await createAccount(one, 'eve')
  const { db } = one.ctx
  const texts: string[] = []
  const write = () =>
    db.transaction(async (tx) => {
      const watched: Tx = { ...tx, run: (query) => (texts.push(query.texts.join('?')), tx.run(query)) }
      await sequenceEvents(one.ctx, watched, [identity(eve.did as Did)])
    })
  expect(await leastCost(db, write)).toBeLessThanOrEqual(2)
  expect(texts.filter((text) => text.includes('repo_seq'))).toEqual([])
})

for (const [what, begin] of [
  [
    'the events of a deleted account',
    (did: Did) => {
      const headers = { ...bearer(ADMIN_TOKEN), 'content-type': 'application/json' }
      const body = JSON.stringify({ did })
      return fetch(`${one.url}/xrpc/com.atproto.admin.deleteAccount`, { method: 'POST', headers, body })
    },
  ],
  [
    'old events',
    (_: Did, newest: number) => one.ctx.db.transactionOn(logLock, (tx) => pruneEvents(tx, newest, 10_000)),
  ],
] as const)
  test(`while ${what} are being deleted, others get their numbers`, async () => {
    const [ann, ben] = await Promise.all([
      createAccount(one, `slowly${what.length}`),
      createAccount(other, `meanwhile${what.length}`),
    ])
    await write(one, ann, 'to be deleted')
    await allNumbered(one)
    const { db } = one.ctx
    const newest = await db.get<{ seq: number }>(sql`SELECT max(seq) AS seq FROM repo_seq WHERE did = ${ann.did}`)
    await using sequencer = await openTransaction()
    // Batches wait for this row.
    await sequencer.tx.get(sql`SELECT 1 FROM lease WHERE name = ${EVENT_NUMBERS} FOR UPDATE`)
    await write(other, ben, 'before')
    const before = await headSeq(db)
    // A deletion of many events takes as long as one that waits for this row.
    await using obstacle = await openTransaction()
    await obstacle.tx.get(sql`SELECT 1 FROM repo_seq WHERE seq = ${newest!.seq} FOR UPDATE`)
    const deletion = begin(ann.did as Did, newest!.seq)
    await until(async () => {
      const [waiting] = await admin.unsafe(`
        SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'DELETE FROM repo_seq %'`)
      return waiting !== undefined
    })
    let isUnderWay = true
    void Promise.resolve(deletion).finally(() => (isUnderWay = false))
    await sequencer.commit()
    await until(async () => (await headSeq(db)) > before)
    expect(isUnderWay).toBe(true)
    await obstacle.commit()
    await deletion
    expect(await db.get(sql`SELECT 1 FROM repo_seq WHERE seq = ${newest!.seq}`)).toBe(null)
  })
