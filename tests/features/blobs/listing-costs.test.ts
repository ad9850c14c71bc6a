/** What lists, searches and counts of blobs cost, in repositories of two sizes: counted, and the same in both. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { faultyBlobsOf } from '../../../src/features/data/blobs/blob-fault-store.ts'
import {
  countReferencedCids,
  listReferencedCids,
  someMissing,
} from '../../../src/features/data/blobs/reference-store.ts'
import { listSpaceBlobs } from '../../../src/features/data/blobs/space-reference-store.ts'
import {
  inPieces,
  sql,
  sqlRows,
  type Database,
  type Reader,
  type Sql,
} from '../../../src/platform/database/database.ts'
import { migrations } from '../../../src/platform/database/embedded-migrations.ts'
import { migrate } from '../../../src/platform/database/migrations.ts'
import { openPostgres } from '../../../src/platform/database/postgres.ts'
import { openSqlite } from '../../../src/platform/database/sqlite.ts'
import type { Did, SpaceUri, Tid } from '../../../src/protocol/identifiers.ts'
import { countingReader } from '../../support/pages-read.ts'
import { emptyDatabase } from '../../support/servers/postgres.ts'

// A hundred thousand references are written.
setDefaultTimeout(60_000)

const LIMIT = 20
/** Two searches of an index, of up to four pages each on PostgreSQL. */
const PAGES_PER_BLOB = 8.5
const space = 'at://did:plc:x/space/test.forum.space/a' as SpaceUri
/** Accounts by what they have: so many blobs, each of which so many records refer to. */
const accounts = {
  'few blobs': [100, 2],
  'many blobs': [10_000, 2],
  'blobs that are often referred to': [100, 500],
} as const
type Account = keyof typeof accounts
const didOf = (account: Account) => `did:plc:${account.replaceAll(' ', '')}` as Did
const NEW = 'r5' as Tid

const text = (number: number) => String(number).padStart(6, '0')
/** The last blob is the only one that a record refers to since `NEW`. */
function rowsOf(account: Account): (readonly [did: string, cid: string, record: string, rev: string])[] {
  const [blobs, times] = accounts[account]
  const rows = Array.from({ length: blobs * times }, (_, i) => {
    const cid = `cid${text(Math.floor(i / times))}`
    return [didOf(account), cid, `test.forum.note/${text(i)}`, 'r1'] as const
  })
  return [...rows, [didOf(account), `cid${text(blobs - 1)}`, 'test.forum.note/new', 'r6']]
}

/** Blobs of other accounts that are lost. */
const LOST = 10_000

async function fill(db: Database): Promise<void> {
  await migrate(db, migrations, 0)
  const did = didOf('few blobs')
  const blobs = Array.from({ length: accounts['few blobs'][0] }, (_, i) => [did, `cid${text(i)}`, 'image/png', 1, 1])
  await db.run(sql`INSERT INTO blob (did, cid, mime_type, size, uploaded_at) VALUES ${sqlRows(blobs)}`)
  const lost = Array.from({ length: LOST }, (_, i) => [`cid${text(50)} ${text(i)}`, 'missing', 1])
  for (const rows of inPieces([...lost, [`cid${text(99)}`, 'damaged', 1]]))
    await db.run(sql`INSERT INTO blob_fault (cid, fault, found_at) VALUES ${sqlRows(rows)}`)
  for (const account of Object.keys(accounts) as Account[])
    await db.transaction(async (tx) => {
      for (const piece of inPieces(rowsOf(account))) {
        await tx.run(sql`INSERT INTO blob_reference (did, cid, record, rev) VALUES ${sqlRows(piece)}`)
        const rows = piece.map(([did, cid, record, rev]) => [did, cid, space, record, rev])
        await tx.run(sql`INSERT INTO space_blob_reference (did, cid, space, record, rev) VALUES ${sqlRows(rows)}`)
      }
    })
}

const lists = {
  public: (reader: Reader, did: Did, page: object) => listReferencedCids(reader, { did, limit: LIMIT, ...page }),
  'of a space': (reader: Reader, did: Did, page: object) =>
    listSpaceBlobs(reader, { did, space, limit: LIMIT, ...page }),
}
const pagesAsked: Record<string, object> = {
  'the first page': {},
  'a page in the middle': { cursor: `cid${text(50)}` },
}

interface Counted extends AsyncDisposable {
  reader: Reader
  /** Pages that the last statement has looked at. */
  pages(): number
}

const databases: Record<string, () => Promise<Counted>> = {
  async SQLite() {
    const dir = mkdtempSync(join(tmpdir(), 'holdfast-listing-'))
    const path = join(dir, 'test.db')
    const db = openSqlite({ path })
    await fill(db)
    await db.close()
    const reader = countingReader(path)
    return { reader, pages: () => reader.pages, [Symbol.asyncDispose]: async () => rmSync(dir, { recursive: true }) }
  },
  async PostgreSQL() {
    const database = await emptyDatabase()
    const db = await openPostgres({ url: database.databaseUrl })
    await fill(db)
    await db.run(sql`ANALYZE`)
    let pages = 0
    const all = async <Row>(query: Sql): Promise<Row[]> => {
      const lines = await db.all<Record<string, string>>(sql`EXPLAIN (ANALYZE, BUFFERS) ${query}`)
      const plan = lines.flatMap((line) => Object.values(line)).join('\n')
      pages = [.../Buffers: shared (.*)/.exec(plan)![1]!.matchAll(/=(\d+)/g)].reduce((sum, [, n]) => sum + Number(n), 0)
      return db.all(query)
    }
    const reader: Reader = { all, get: async (query) => (await all<never>(query))[0] ?? null }
    return {
      reader,
      pages: () => pages,
      async [Symbol.asyncDispose]() {
        await db.close()
        await database.drop()
      },
    }
  },
}

describe.each(Object.entries(databases))('on %s', (_, open) => {
  let counted: Counted
  beforeAll(async () => {
    counted = await open()
  })
  afterAll(() => counted[Symbol.asyncDispose]())

  /** Pages that the dearest statement of some work has looked at. */
  async function mostPages(work: (reader: Reader) => Promise<unknown>): Promise<number> {
    const { reader } = counted
    let most = 0
    const noted = async <T>(found: Promise<T>) => {
      const result = await found
      most = Math.max(most, counted.pages())
      return result
    }
    await work({ all: (query) => noted(reader.all(query)), get: (query) => noted(reader.get(query)) })
    return most
  }

  test('faulty blobs of an account are found without a look at all those of others', async () => {
    const did = didOf('few blobs')
    expect(await mostPages((reader) => faultyBlobsOf(reader, did, LIMIT))).toBeLessThanOrEqual(2 * PAGES_PER_BLOB)
    expect(await faultyBlobsOf(counted.reader, did, LIMIT)).toEqual([
      { cid: `cid${text(99)}`, fault: 'damaged', record: `test.forum.note/${text(198)}`, isOfSpaces: false },
    ])
  })

  test('a search for missing blobs looks at a thousand at most in each statement', async () => {
    for (const account of Object.keys(accounts) as Account[]) {
      const pages = await mostPages((reader) => someMissing(reader, { did: didOf(account), limit: LIMIT }))
      // Each is searched for among the references, twice, and among the blobs.
      expect([account, pages / 1000 <= 2 * PAGES_PER_BLOB]).toEqual([account, true])
    }
  })

  test('blobs are counted in statements whose cost does not grow with the number of references', async () => {
    const pagesOf = (account: Account) => mostPages((reader) => countReferencedCids(reader, didOf(account)))
    expect(await pagesOf('blobs that are often referred to')).toBeLessThan(1.5 * (await pagesOf('many blobs')))
    for (const account of Object.keys(accounts) as Account[])
      expect(await countReferencedCids(counted.reader, didOf(account))).toBe(accounts[account][0])
  })

  describe.each(Object.entries(lists))('a list of blobs, %s', (__, list) => {
    const pageOf = async (account: Account, page: object) => {
      const { cids, next } = await list(counted.reader, didOf(account), page)
      return { cids: cids.length, isEnd: next === null, pages: counted.pages() }
    }

    test.each(['the first page', 'a page in the middle'])('%s reads a few pages for each blob in it', async (name) => {
      for (const account of Object.keys(accounts) as Account[]) {
        const { pages, ...page } = await pageOf(account, pagesAsked[name]!)
        expect([account, page]).toEqual([account, { cids: LIMIT, isEnd: false }])
        expect(pages).toBeLessThanOrEqual(PAGES_PER_BLOB * LIMIT)
      }
    })

    test('a page of what is new looks at a thousand blobs at most, and at each of them once', async () => {
      for (const [account, looked] of [
        ['few blobs', 100],
        ['many blobs', 1000],
        ['blobs that are often referred to', 100],
      ] as const) {
        const { pages, ...page } = await pageOf(account, { since: NEW })
        const isAll = account !== 'many blobs'
        expect([account, page]).toEqual([account, { cids: isAll ? 1 : 0, isEnd: isAll }])
        expect(pages).toBeLessThanOrEqual(PAGES_PER_BLOB * looked)
      }
    })
  })
})
