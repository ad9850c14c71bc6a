/** What a long notice costs, and one about an account with many cases. */
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
import { createAccount } from '../../support/clients/account.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { signedAs } from '../../support/clients/service-signer.ts'
import { countingReader } from '../../support/pages-read.ts'
import { atOneNode } from '../../support/turns.ts'
import { useWorld } from '../../support/world.ts'

// Ten thousand cases are written.
setDefaultTimeout(60_000)

const { pds, labeler } = useWorld({
  labeler: true,
  config: ({ labeler }) => ({ rateLimit: { enabled: false }, cases: { noticeAuthorities: [labeler.did] } }),
})

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

test('a long notice is taken in pieces, between which others write', async () => {
  using _ = atOneNode(pds, 'each node counts its own transactions')
  const bob = await createAccount(pds, 'bob')
  const value = { text: 'bad' }
  const writes = Array.from({ length: 100 }, () => ({
    $type: 'com.atproto.repo.applyWrites#create',
    collection: 'com.example.note',
    value,
  }))
  const { body } = await bob.call('com.atproto.repo.applyWrites', { json: { repo: bob.did, writes } })
  const uris = body.results.map(({ uri }: { uri: string }) => ({ uri }))
  const subjects = [uris.slice(0, 50), uris.slice(50)].map((records) => ({ accountDid: bob.did, records }))
  const json = { noticeId: 14, authority: labeler.did, abuseType: 'spam', subjects }
  const { counters } = pds.ctx.db
  const before = counters.transactions
  const sent = await request(`${pds.url}/v1/abuse-notices`, { json, headers: bearer(signedAs(labeler, pds)) })
  expect([sent.status, sent.body.cases.length]).toEqual([200, 100])
  expect(counters.transactions - before).toBeGreaterThanOrEqual(5)
})
