/** How many pages SQLite changes for records that accounts add by turns. */
import { expect, test } from 'bun:test'
import { Database as Connection } from 'bun:sqlite'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeRoom, putRecords } from '../../../src/features/data/repo/record-store.ts'
import { sql } from '../../../src/platform/database/database.ts'
import { migrations } from '../../../src/platform/database/embedded-migrations.ts'
import { migrate } from '../../../src/platform/database/migrations.ts'
import { openSqlite } from '../../../src/platform/database/sqlite.ts'
import { cidOfCbor } from '../../../src/protocol/cid.ts'
import type { Tid } from '../../../src/protocol/identifiers.ts'
import { nextTid } from '../../../src/protocol/tid.ts'
import { createAccount } from '../../support/clients/account.ts'
import { startPds } from '../../support/servers/pds.ts'

const REPOS = 12
const collection = 'app.bsky.feed.post'

/** Adds records of `valueBytes` by turns, one for each repository in a group. Returns pages for each record. */
async function pagesPerRecord(valueBytes: number, makesRoom: boolean): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-room-'))
  const path = join(folder, 'test.db')
  const db = openSqlite({ path })
  try {
    await migrate(db, migrations, 0)
    const log = new Connection(path, { readonly: true })
    const frames = () => log.query<{ log: number }, []>('PRAGMA wal_checkpoint(NOOP)').get()!.log
    let rev: Tid | null = null
    const addAll = (count: number) =>
      db.transaction(async (tx) => {
        for (let repoId = 1; repoId <= REPOS; repoId++) {
          rev = nextTid(rev, 1_700_000_000_000_000, 1)
          const value = Buffer.from(rev.repeat(valueBytes)).subarray(0, valueBytes)
          const record = { path: `${collection}/${rev}`, cid: cidOfCbor(value), subject: null, value }
          await putRecords(tx, repoId, rev, 0, [record], { areListed: false, setsAside: true })
          if (makesRoom) await makeRoom(tx, repoId, rev, record, count)
        }
      })
    for (let count = 0; count < 40; count++) await addAll(count)
    const before = frames()
    for (let count = 40; count < 100; count++) await addAll(count)
    const pages = (frames() - before) / (60 * REPOS)
    log.close()
    expect(await db.get<{ count: number }>(sql`SELECT count(*) AS count FROM record`)).toEqual({ count: 100 * REPOS })
    expect(await db.integrityFaults()).toEqual([])
    return pages
  } finally {
    await db.close()
    rmSync(folder, { recursive: true })
  }
}

test('room that is made for later records saves a fifth of the pages', async () => {
  for (const valueBytes of [120, 350])
    expect(await pagesPerRecord(valueBytes, true)).toBeLessThan(0.85 * (await pagesPerRecord(valueBytes, false)))
})

test('records that fill pages by themselves get no room', async () => {
  expect(await pagesPerRecord(1200, true)).toBe(await pagesPerRecord(1200, false))
})

test('a repository has its records and nothing else, whatever their keys and sizes', async () => {
  await using pds = await startPds()
  const { did, call } = await createAccount(pds, 'alice')
  const written: string[] = []
  const create = async (record: object, rkey?: string) => {
    const { status, body } = await call('com.atproto.repo.createRecord', {
      json: { repo: did, collection: 'com.example.note', rkey, record, validate: false },
    })
    expect(status).toBe(200)
    written.push(String(body.uri).split('/').at(-1)!)
  }
  for (let i = 0; i < 30; i++) {
    await create({ text: 'x'.repeat(37 * i) })
    await create({ text: 'y' }, `${written.at(-1)}.`)
  }
  const { records } = (await call(`com.atproto.repo.listRecords?repo=${did}&collection=com.example.note&limit=100`))
    .body as {
    records: { uri: string }[]
  }
  expect(records.map(({ uri }) => uri.split('/').at(-1))).toEqual(written.toSorted().toReversed())
  expect((await pds.rows('record')).length).toBe(written.length)
  const totals = await call('com.atproto.server.checkAccountStatus')
  expect(totals.body).toMatchObject({ indexedRecords: written.length })
})
