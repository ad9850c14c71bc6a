/**
 * Numbers of events on PostgreSQL: how many one server numbers in a second, with and without an old snapshot that keeps
 * the rows of all batches from being cleaned up; how long it takes from the answer of a write to its frame at another
 * node; and what a write costs. Run it with `bun tests/bench/event-numbers.ts [events]`. TEST_POSTGRES_FSYNC=on
 * measures with a log that is flushed.
 */
import { SQL } from 'bun'
import { Floor } from '../../src/features/data/firehose/sequencer.ts'
import {
  BATCH_EVENTS,
  batchOf,
  insertUnnumbered,
  type Batch,
} from '../../src/features/data/firehose/sequencer-store.ts'
import { Sql } from '../../src/platform/database/database.ts'
import { openPostgres } from '../../src/platform/database/postgres.ts'
import { cidOfCbor } from '../../src/protocol/cid.ts'
import type { RepoEvent } from '../../src/protocol/frames.ts'
import type { Did, Tid } from '../../src/protocol/identifiers.ts'
import { createAccount } from '../support/clients/account.ts'
import { startCluster } from '../support/servers/cluster.ts'
import { allNumbered } from '../support/clients/events.ts'
import { testDatabase } from '../support/servers/postgres.ts'
import { Subscriber } from '../support/clients/subscriber.ts'

const EVENTS = Number(process.argv[2] ?? 60_000)
/** Bytes of the CAR in a commit event: the nodes on the path of a record, in a repository of some thousand records. */
const CAR_BYTES = 4000
const WRITES = 400
const PAUSE_MILLIS = 10

const cid = cidOfCbor(new Uint8Array([1]))
const rev = '3jzfcijpj2z2a' as Tid
const event = (i: number): RepoEvent => ({
  type: 'commit',
  did: `did:plc:${String(i % 1000).padStart(24, 'a')}` as Did,
  commit: cid,
  rev,
  since: rev,
  blocks: crypto.getRandomValues(new Uint8Array(CAR_BYTES)),
  ops: [{ action: 'create', path: 'app.bsky.feed.post/3jzfcijpj2z2a', cid, prev: null }],
  prevData: cid,
})

async function sequencerAlone(hasOldSnapshot: boolean): Promise<void> {
  const place = await testDatabase()
  const db = await openPostgres({ url: place.databaseUrl, access: 'shared' })
  const old = new SQL({ adapter: 'postgres', url: place.databaseUrl, max: 1 })
  await old.unsafe('BEGIN ISOLATION LEVEL REPEATABLE READ')
  if (hasOldSnapshot) await old.unsafe('SELECT 1 FROM repo_seq')
  await db.transaction((tx) =>
    insertUnnumbered(
      tx,
      Array.from({ length: 200 }, (_, i) => event(i)),
      0,
    ),
  )
  const columns = 'did, event_type, erases, written_at, head, middle, rest'
  await db.run(
    new Sql(
      [
        `INSERT INTO unnumbered_event (${columns}) SELECT ${columns} FROM unnumbered_event, generate_series(2, ${EVENTS / 200})`,
      ],
      [],
    ),
  )
  const lease = (await db.cluster!.take('bench'))!
  const floor = new Floor()
  const millis: number[] = []
  let numbered = 0
  for (let start = performance.now(); ; start = performance.now()) {
    const query = batchOf({ lease, floor: floor.id, maxEvents: BATCH_EVENTS, sequencedAt: Date.now() })
    const batch = (await db.cluster!.autocommit<Batch>(query))[0]!
    if (batch.events === 0) break
    floor.after(batch)
    numbered += batch.events
    millis.push(performance.now() - start)
  }
  const sum = (values: number[]) => values.reduce((all, value) => all + value, 0)
  const mean = (values: number[]) => (sum(values) / values.length).toFixed(1)
  console.log(
    `sequencer alone${hasOldSnapshot ? ', beside an old snapshot' : ''}: ${((numbered / sum(millis)) * 1000).toFixed(0)} events/s` +
      ` (${numbered} events of ${CAR_BYTES} bytes; a batch takes ${mean(millis.slice(0, 10))} ms at first and ${mean(millis.slice(-10))} ms at last)`,
  )
  await old.close()
  await db.close()
  await place.drop()
}

async function writes(): Promise<void> {
  await using cluster = await startCluster(2, { rateLimit: { enabled: false } }, { strictTransactions: false })
  const [one, other] = cluster.nodes
  const account = await createAccount(one!, 'alice')
  await allNumbered(one!)
  const subscriber = new Subscriber(other!.url)
  await subscriber.opened
  await Bun.sleep(PAUSE_MILLIS)
  const answeredAt = new Map<string, number>()
  const delays: number[] = []
  const spent = { statements: 0, roundTrips: 0 }
  for (let i = 0; i < WRITES; i++) {
    const record = { $type: 'app.bsky.feed.post', text: `post ${i}`, createdAt: '2026-01-01T00:00:00.000Z' }
    const before = { ...one!.ctx.db.counters }
    const { body } = await account.call('com.atproto.repo.createRecord', {
      json: { repo: account.did, collection: record.$type, record },
    })
    answeredAt.set(body.commit.cid, performance.now())
    const after = one!.ctx.db.counters
    spent.statements += after.statements - before.statements
    spent.roundTrips += after.roundTrips - before.roundTrips
    await subscriber.until(i + 1)
    delays.push(performance.now() - answeredAt.get(String(subscriber.messages[i]!.body['commit']))!)
    await Bun.sleep(PAUSE_MILLIS)
  }
  subscriber.close()
  delays.sort((a, b) => a - b)
  const at = (share: number) => delays[Math.floor(share * (delays.length - 1))]!.toFixed(1)
  console.log(
    `answer of a write to its frame at another node: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, longest ${at(1)} ms`,
  )
  console.log(
    `createRecord: ${(spent.statements / WRITES).toFixed(1)} statements in ${(spent.roundTrips / WRITES).toFixed(1)} round trips`,
  )
}

await sequencerAlone(false)
await sequencerAlone(true)
await writes()
process.exit(0)
