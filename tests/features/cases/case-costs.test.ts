/** What it costs to find the case of a subject, of an account with few cases and of one with many. */
import { expect, setDefaultTimeout, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findCaseWith } from '../../../src/features/operations/cases/case-store.ts'
import { inPieces, sql, sqlRows } from '../../../src/platform/database/database.ts'
import { migrations } from '../../../src/platform/database/embedded-migrations.ts'
import { migrate } from '../../../src/platform/database/migrations.ts'
import { openSqlite } from '../../../src/platform/database/sqlite.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { countingReader } from '../../support/pages-read.ts'

// Ten thousand cases are written.
setDefaultTimeout(60_000)

const cases = { 'did:plc:few': 10, 'did:plc:many': 10_000 } as const
const itemOf = (i: number) => `test.forum.note/${String(i).padStart(6, '0')}`

test('a notice finds the case of each of its subjects as fast if the account has many', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'holdfast-cases-'))
  try {
    const path = join(dir, 'test.db')
    const db = openSqlite({ path })
    await migrate(db, migrations, 0)
    for (const [did, count] of Object.entries(cases))
      await db.transaction(async (tx) => {
        const rows = Array.from({ length: count }, (_, i) => [did, 'record', itemOf(i), 'decided', 0, 0, 0, 0])
        for (const piece of inPieces(rows))
          await tx.run(sql`
            INSERT INTO moderation_case (did, kind, item, state, opened_at, changed_at, deadline_at, further_reports)
            VALUES ${sqlRows(piece)}`)
      })
    await db.close()
    using reader = countingReader(path)
    const said = { source: 'notice', by: 'did:plc:authority', reason: 'spam (notice 1)', text: '' } as const
    const pagesFor = async (did: Did) => {
      expect(await findCaseWith(reader, { did, kind: 'record', item: itemOf(5) }, said)).toBeNull()
      return reader.pages
    }
    expect((await pagesFor('did:plc:many' as Did)) - (await pagesFor('did:plc:few' as Did))).toBeLessThan(3)
  } finally {
    rmSync(dir, { recursive: true })
  }
})
