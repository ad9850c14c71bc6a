/** How much of a database is in memory while it is copied. */
import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { copyTables } from '../../../src/features/operations/backup/table-copy.ts'
import { sql, sqlRows } from '../../../src/platform/database/database.ts'
import { openDatabase } from '../../../src/platform/database/open-database.ts'
import { emptyDatabase } from '../../support/servers/postgres.ts'

const MOST_BYTES = 4 * 1024 ** 2
const SMALL_ROWS = 1500
const LARGE_ROWS = 200
const LARGE_BYTES = 60_000

const scratch = mkdtempSync(join(tmpdir(), 'holdfast-pages-'))
afterAll(() => rmSync(scratch, { recursive: true }))

const places = {
  SQLite: async () => ({ databaseUrl: join(scratch, 'source.db'), drop: async () => {} }),
  PostgreSQL: emptyDatabase,
}

for (const [name, make] of Object.entries(places))
  test(`large rows after many small ones leave ${name} in small pages`, async () => {
    const place = await make()
    const [source, target] = [
      await openDatabase({ databaseUrl: place.databaseUrl }),
      await openDatabase({ databaseUrl: join(scratch, `of ${name}.db`) }),
    ]
    await source.run(
      name === 'SQLite'
        ? sql`CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT, bytes BLOB)`
        : sql`CREATE TABLE note (id BIGINT PRIMARY KEY, text TEXT, bytes BYTEA)`,
    )
    await target.run(sql`CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT, bytes BLOB)`)
    const rows = Array.from({ length: SMALL_ROWS + LARGE_ROWS }, (_, id) =>
      id < SMALL_ROWS
        ? [id, null, null]
        : // Random bytes cannot be compressed, and a text that can be is long all the same.
          [id, 'x'.repeat(LARGE_BYTES), crypto.getRandomValues(new Uint8Array(LARGE_BYTES))],
    )
    for (let i = 0; i < rows.length; i += 100)
      await source.run(sql`INSERT INTO note (id, text, bytes) VALUES ${sqlRows(rows.slice(i, i + 100))}`)
    const pages: number[] = []
    const counted = {
      dialect: source.dialect,
      get: source.get,
      all: async <Row>(query: Parameters<typeof source.all>[0]) => {
        const page = await source.all<Row & { text?: string | null; bytes?: Uint8Array | null }>(query)
        pages.push(page.reduce((sum, row) => sum + (row.text?.length ?? 0) + (row.bytes?.byteLength ?? 0), 0))
        return page
      },
    }
    expect(await copyTables(counted, target, () => {})).toBe(rows.length)
    expect(Math.max(...pages)).toBeLessThanOrEqual(MOST_BYTES)
    expect(pages.length).toBeLessThan(40)
    expect(await target.get(sql`SELECT sum(length(bytes)) AS bytes, sum(length(text)) AS text FROM note`)).toEqual({
      bytes: LARGE_ROWS * LARGE_BYTES,
      text: LARGE_ROWS * LARGE_BYTES,
    })
    await source.close()
    await target.close()
    await place.drop()
  })
