/** Events of one account are found whether they are listed by account or not. */
import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { deleteEventsOf, eventNumbersOf } from '../../../src/features/data/firehose/event-list.ts'
import { keepEvents, newestCommitEvent, raiseSeq } from '../../../src/features/data/firehose/event-log.ts'
import type { RepoEvent } from '../../../src/features/data/firehose/firehose.ts'
import { sql } from '../../../src/platform/database/database.ts'
import { migrations } from '../../../src/platform/database/embedded-migrations.ts'
import { migrate } from '../../../src/platform/database/migrations.ts'
import { openSqlite } from '../../../src/platform/database/sqlite.ts'
import { encode } from '../../../src/protocol/cbor.ts'
import { cidOfCbor } from '../../../src/protocol/cid.ts'
import { eventFrame } from '../../../src/protocol/frames.ts'
import type { Did, Handle, Tid } from '../../../src/protocol/identifiers.ts'
import { nextTid } from '../../../src/protocol/tid.ts'
import { sequence } from '../../support/clients/events.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { ADMIN_TOKEN, startPds, type TestPds } from '../../support/servers/pds.ts'
import { onPostgres } from '../../support/servers/suite.ts'
import { until } from '../../support/until.ts'

const alice = 'did:plc:aliceaaaaaaaaaaaaaaaaaaa' as Did
const bob = 'did:plc:bobbbbbbbbbbbbbbbbbbbbbb' as Did
const carol = 'did:plc:carolccccccccccccccccccc' as Did
const identity = (did: Did): RepoEvent => ({ type: 'identity', did, handle: 'alice.test' as Handle })
const kept = { firehose: { logRetentionSecs: 0, logRetentionCount: 0 } }

/** The revision of a commit, by its place. */
const revOf = (place: number): Tid => nextTid(null, 1_700_000_000_000_000 + place, 1)
const commit = (did: Did, place: number): RepoEvent => ({
  type: 'commit',
  did,
  commit: cidOfCbor(encode({ place })),
  rev: revOf(place),
  since: null,
  blocks: new Uint8Array(),
  ops: [],
  prevData: null,
})

/** Fills the log with this many events of two accounts by turns, in transactions of different sizes. */
async function fill(pds: TestPds, count: number): Promise<void> {
  for (let begun = 0; begun < count;) {
    const size = Math.min(1 + (begun % 97), count - begun)
    await sequence(pds, ...Array.from({ length: size }, (_, i) => identity((begun + i) % 2 === 0 ? alice : bob)))
    begun += size
  }
}
const listed = async (pds: TestPds) =>
  (await pds.rows('repo_seq_run', {}, ['seq'])).map(({ seq }) => seq).toSorted((a, b) => a - b)
const numbersOf = async ({ ctx }: TestPds, did: Did) =>
  (await ctx.db.all<{ seq: number }>(eventNumbersOf(did))).map(({ seq }) => seq).toSorted((a, b) => a - b)
const upTo = (count: number) => Array.from({ length: count }, (_, i) => i + 1)

test('all events of an account go with it, listed or not, and those of others stay', async () => {
  await using pds = await startPds(kept)
  await fill(pds, 1700)
  // PostgreSQL has an index instead.
  if (!onPostgres) expect((await listed(pds)).length).toBeGreaterThan(1100)
  expect(await numbersOf(pds, alice)).toEqual(upTo(1700).filter((seq) => seq % 2 === 1))
  await pds.restart()
  expect(await numbersOf(pds, bob)).toEqual(upTo(1700).filter((seq) => seq % 2 === 0))

  await sequence(pds, { type: 'account', did: alice, status: 'deleted' })
  expect(await pds.count('repo_seq', { did: alice })).toBe(1)
  expect(await pds.count('repo_seq_run', { did: alice })).toBe(0)
  expect(await pds.count('repo_seq', { did: bob })).toBe(850)
  expect(await numbersOf(pds, bob)).toEqual(upTo(1700).filter((seq) => seq % 2 === 0))
})

test('a deletion that fails leaves the events of the account where they were', async () => {
  await using pds = await startPds(kept)
  await fill(pds, 1100)
  const before = await listed(pds)
  const undone = new Error('undone')
  const failing = pds.ctx.db.transaction(async (tx) => {
    expect(await deleteEventsOf(tx, alice)).toBe(550)
    throw undone
  })
  expect(await failing.catch((error: unknown) => error)).toBe(undone)
  expect(await numbersOf(pds, alice)).toHaveLength(550)
  expect(await listed(pds)).toEqual(before)
})

test('the newest commit of an account is found far back in the log, near its end, and not if there is none', async () => {
  await using pds = await startPds(kept)
  const { db } = pds.ctx
  const newest = (did: Did) => newestCommitEvent(db, did)
  await sequence(pds, commit(alice, 1), commit(bob, 2), commit(alice, 3))
  await fill(pds, 5000)
  expect(await newest(alice)).toMatchObject({ rev: revOf(3) })
  expect(await newest(bob)).toMatchObject({ rev: revOf(2) })
  expect(await newest(carol)).toBeNull()
  await sequence(pds, commit(bob, 4), identity(bob))
  expect(await newest(bob)).toMatchObject({ rev: revOf(4) })
})

test('what retention deletes leaves the list too, run by run', async () => {
  await using pds = await startPds({ firehose: { logRetentionSecs: 0, logRetentionCount: 2000 } })
  await fill(pds, 9000)
  expect(await pds.runSweep('firehose-gc')).toEqual({ swept: 7000, errors: 0 })
  expect((await listed(pds))[0]).toBe(onPostgres ? undefined : 4096)
  await sequence(pds, { type: 'account', did: alice, status: 'deleted' })
  expect(await pds.count('repo_seq', { did: alice })).toBe(1)
  expect(await pds.count('repo_seq', { did: bob })).toBe(1000)
})

test('operators are told how many events the log has, pruned, erased and not listed ones told apart', async () => {
  await using pds = await startPds({ firehose: { logRetentionSecs: 0, logRetentionCount: 2000 } })
  const told = async () => {
    const { body } = await request(`${pds.url}/v1/admin/health`, { headers: bearer(ADMIN_TOKEN) })
    return body.firehose.retainedEvents
  }
  expect(await told()).toBe(0)
  await fill(pds, 5000)
  await pds.runSweep('firehose-gc')
  expect(await told()).toBe(2000)
  await sequence(pds, { type: 'account', did: alice, status: 'deleted' }, identity(bob))
  expect(await told()).toBe(await pds.count('repo_seq'))
})

test('events of another server, whose numbers are among those that are listed, are listed', async () => {
  await using pds = await startPds(kept)
  await pds.ctx.db.transaction((tx) => raiseSeq(tx, 1000))
  await sequence(pds, ...Array<RepoEvent>(2000).fill(identity(bob)))
  await sequence(pds, ...Array<RepoEvent>(2000).fill(identity(bob)))
  const foreign = [3, 4].map((seq) => ({
    seq,
    did: alice,
    type: 'identity' as const,
    sequencedAt: 0,
    frame: eventFrame(identity(alice), seq, 0),
  }))
  for (let time = 0; time < 2; time++) await pds.ctx.db.transaction((tx) => keepEvents(tx, foreign))
  expect(await numbersOf(pds, alice)).toEqual([3, 4])
})

test('a server that starts lists what another version, or another database, has left unlisted', async () => {
  await using pds = await startPds(kept)
  await fill(pds, 3000)
  await pds.damage('repo_seq_past', {}, { listed_through: 0 })
  await pds.lose('repo_seq_run')
  expect(await numbersOf(pds, alice)).toHaveLength(1500)
  await pds.restart()
  if (!onPostgres) await until(async () => (await listed(pds)).length > 2500)
  expect(await numbersOf(pds, alice)).toHaveLength(1500)
  expect(await numbersOf(pds, bob)).toHaveLength(1500)
})

test('the events of an older database are all listed', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-list-'))
  const db = openSqlite({ path: join(folder, 'database') })
  const older = migrations.filter(({ number }) => number < 260)
  await migrate(db, older, 0)
  for (const seq of [5, 4095, 4096, 9000])
    await db.run(
      sql`INSERT INTO repo_seq (seq, did, event_type, frame, sequenced_at) VALUES (${seq}, ${alice}, 'identity', ${new Uint8Array()}, 0)`,
    )
  await migrate(db, migrations, 0)
  expect(await db.all<object>(sql`SELECT run, seq FROM repo_seq_run ORDER BY seq`)).toEqual([
    { run: 0, seq: 5 },
    { run: 0, seq: 4095 },
    { run: 1, seq: 4096 },
    { run: 2, seq: 9000 },
  ])
  expect(await db.transaction((tx) => deleteEventsOf(tx, alice))).toBe(4)
  await db.close()
  rmSync(folder, { recursive: true })
})
