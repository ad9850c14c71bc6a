/** What reads in spaces cost, in repositories of two sizes: pages of the database file, the same in both. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { spaceOps, spaceRecord, spaceRecords } from '../../../src/features/data/spaces/space-reading.ts'
import { findSpaceRepo, listSpacesOf, spaceEntriesAt } from '../../../src/features/data/spaces/space-store.ts'
import type { Context } from '../../../src/platform/context.ts'
import type { Database, Reader } from '../../../src/platform/database/database.ts'
import { sql } from '../../../src/platform/database/database.ts'
import { migrations } from '../../../src/platform/database/embedded-migrations.ts'
import { migrate } from '../../../src/platform/database/migrations.ts'
import { openSqlite } from '../../../src/platform/database/sqlite.ts'
import { encode } from '../../../src/protocol/cbor.ts'
import { cidOfCbor } from '../../../src/protocol/cid.ts'
import type { Did, Nsid, RecordKey, SpaceUri, Tid } from '../../../src/protocol/identifiers.ts'
import { nextTid } from '../../../src/protocol/tid.ts'
import { countingReader, type CountingReader } from '../../support/pages-read.ts'

// Ten thousand records are written.
setDefaultTimeout(60_000)

const NOTE = 'test.forum.note' as Nsid
const LIMIT = 50
const sizes = {
  small: { records: 200, spaces: 10, bytes: 200 },
  large: { records: 10_000, spaces: 500, bytes: 200 },
  /** Of records with long values. */
  heavy: { records: 200, spaces: 10, bytes: 50_000 },
}
type Size = keyof typeof sizes
const places = Object.fromEntries(
  Object.keys(sizes).map((size) => [
    size,
    { repo: `did:plc:${size}` as Did, space: `at://did:plc:${size}/space/test.forum.space/s000` as SpaceUri },
  ]),
) as Record<Size, { repo: Did; space: SpaceUri }>
const keyOf = (i: number) => `k${String(i).padStart(6, '0')}` as RecordKey
const START = 1_700_000_000_000_000
const revOf = (i: number): Tid => nextTid(null, START + i, 0)

const dir = mkdtempSync(join(tmpdir(), 'holdfast-space-reads-'))
const path = join(dir, 'test.db')
let reader: CountingReader

async function fill(db: Database, size: Size): Promise<void> {
  const { repo, space } = places[size]
  const { records, spaces, bytes } = sizes[size]
  await db.transaction(async (tx) => {
    for (let i = 0; i < spaces; i++)
      await tx.run(sql`
        INSERT INTO space_repo (did, space, authority, type, rev, record_count, state)
        VALUES (${repo}, ${space.slice(0, -3) + String(i).padStart(3, '0')}, ${repo}, 'test.forum.space',
          ${revOf(records)}, ${records}, ${new Uint8Array(2048)})`)
    const { id } = (await findSpaceRepo(tx, repo, space))!
    for (let i = 0; i < records; i++) {
      const value = encode({ $type: NOTE, text: `text ${i}`.padEnd(bytes) })
      const cid = cidOfCbor(value).bytes
      await tx.run(sql`
        INSERT INTO space_record (space_repo_id, path, cid, rev, value)
        VALUES (${id}, ${`${NOTE}/${keyOf(i)}`}, ${cid}, ${revOf(i)}, ${value})`)
      await tx.run(sql`
        INSERT INTO space_op (space_repo_id, rev, idx, path, cid, prev)
        VALUES (${id}, ${revOf(i)}, 0, ${`${NOTE}/${keyOf(i)}`}, ${cid}, ${null})`)
    }
  })
}

beforeAll(async () => {
  const db = openSqlite({ path })
  await migrate(db, migrations, 0)
  for (const size of Object.keys(sizes) as Size[]) await fill(db, size)
  await db.close()
  reader = countingReader(path)
})
afterAll(() => rmSync(dir, { recursive: true }))

/** A context that has a database, and adds up the pages that statements read. */
function counted(): { ctx: Context; pages(): number } {
  let pages = 0
  const adding = async <Result>(ask: Promise<Result>): Promise<Result> => {
    pages += reader.pages
    return ask
  }
  const db: Reader & Pick<Database, 'shortSnapshot'> = {
    all: (query) => adding(reader.all(query)),
    get: (query) => adding(reader.get(query)),
    shortSnapshot: (work) => work(db),
  }
  return { ctx: { db } as Context, pages: () => pages }
}

const middle = (size: Size) => Math.floor(sizes[size].records / 2)
const reads: Record<string, (ctx: Context, size: Size) => Promise<unknown>> = {
  'a record': (ctx, size) => spaceRecord(ctx, { ...places[size], collection: NOTE, rkey: keyOf(middle(size)) }),
  'the first page of records': (ctx, size) => spaceRecords(ctx, { ...places[size], limit: LIMIT }),
  'a page of records from the middle': (ctx, size) => {
    const { space, repo } = places[size]
    const cursor = `${space}/${repo}/${NOTE}/${keyOf(middle(size))}`
    return spaceRecords(ctx, { space, repo, limit: LIMIT, cursor, collection: NOTE, reverse: true })
  },
  'a page of changes from the middle': (ctx, size) =>
    spaceOps(ctx, { ...places[size], limit: LIMIT, since: revOf(middle(size)) }),
  'a page of spaces': ({ db }, size) => listSpacesOf(db, places[size].repo, { after: '', limit: 5 }),
}

const costOf = async (read: (ctx: Context, size: Size) => Promise<unknown>, size: Size) => {
  const { ctx, pages } = counted()
  await read(ctx, size)
  return pages()
}

test.each(Object.entries(reads))('%s costs as much in a large repository as in a small one', async (_, read) => {
  const [small, large] = [await costOf(read, 'small'), await costOf(read, 'large')]
  expect(small).toBeGreaterThan(0)
  // Each search of an index may go one or two pages deeper; a page of records makes four, and one for each record.
  expect(large).toBeLessThanOrEqual(2 * small + 10)
})

test.each([
  ['records', spaceRecords],
  ['changes', spaceOps],
] as const)('a page of large %s is made in turns with other requests', async (_, list) => {
  const { ctx } = counted()
  let turns = 0
  let timer = setImmediate(function turn() {
    turns++
    timer = setImmediate(turn)
  })
  await list(ctx, { ...places.heavy, limit: 8 })
  clearImmediate(timer)
  // Eight records of 50 kB.
  expect(turns).toBeGreaterThanOrEqual(3)
})

const withoutValues: typeof reads = {
  'a list of records': (ctx, size) => spaceRecords(ctx, { ...places[size], limit: 1000, excludeValues: true }),
  'what is there at many paths': async ({ db }, size) => {
    const { repo, space } = places[size]
    const { id } = (await findSpaceRepo(db, repo, space))!
    const paths = Array.from({ length: 100 }, (_, i) => `${NOTE}/${keyOf(i)}`)
    expect((await spaceEntriesAt(db, id, paths)).size).toBe(100)
  },
}

test.each(Object.entries(withoutValues))(
  '%s, without values, costs the same however long these are',
  async (_, read) => {
    const [small, heavy] = [await costOf(read, 'small'), await costOf(read, 'heavy')]
    expect(small).toBeGreaterThan(0)
    // Of a row with a long value, one page is read for its length.
    expect(heavy).toBeLessThanOrEqual(2 * small + 200)
  },
)
