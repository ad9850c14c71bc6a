/** Tables that strangers fill: how many documents they hold is bounded, and how many bytes. */
import { expect, test } from 'bun:test'
import { clientOf } from '../../../src/features/access/oauth/clients.ts'
import { resolveDid } from '../../../src/features/identity/identity/identity.ts'
import { Sql, sql, sqlRows } from '../../../src/platform/database/database.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { createAccount } from '../../support/clients/account.ts'
import { startPds, type TestPds } from '../../support/servers/pds.ts'

const MAX_ROWS = 20_000
/** Additions between two looks at a table. */
const LOOK_EVERY = 100
const PAGE_ROWS = 1000
const MAX_BYTES = 64 * 1024 ** 2
const LARGEST_BYTES = 64 * 1024

/** Tables, with what adds to them by a fetch. */
const tables = {
  did_document: async (pds: TestPds) => {
    const { did } = await createAccount(pds, 'alice')
    return () => resolveDid(pds.ctx, did as Did, { live: true })
  },
  oauth_client: async (pds: TestPds) => {
    const document = {
      client_id: '',
      redirect_uris: ['https://app.example.com/'],
      response_types: ['code'],
      grant_types: ['authorization_code'],
      scope: 'atproto',
      token_endpoint_auth_method: 'none',
      dpop_bound_access_tokens: true,
    }
    pds.ctx.outbound.fetch = async (url) => Response.json({ ...document, client_id: String(url) })
    let clients = 0
    return () => clientOf(pds.ctx, `https://app.example.com/${++clients}.json`, { mayFetch: true })
  },
}

for (const [name, adder] of Object.entries(tables)) {
  test(`${name} keeps ${MAX_ROWS} rows, whoever is looked up`, async () => {
    await using pds = await startPds({ rateLimit: { enabled: false } })
    const table = new Sql([name], [])
    const count = async () =>
      (await pds.ctx.db.get<{ count: number }>(sql`SELECT count(*) AS count FROM ${table}`))!.count
    for (let page = 0; page < MAX_ROWS / PAGE_ROWS; page++) {
      const rows = Array.from({ length: PAGE_ROWS }, (_, i) => [`did:web:x${page * PAGE_ROWS + i}.example`, '{}', 0])
      await pds.ctx.db.run(sql`INSERT INTO ${table} VALUES ${sqlRows(rows)}`)
    }
    const add = await adder(pds)
    for (let added = 0; added < LOOK_EVERY; added++) await add()
    expect(await count()).toBe(MAX_ROWS)
  })

  test(`${name} keeps ${MAX_BYTES} bytes, and the small documents of them`, async () => {
    await using pds = await startPds({ rateLimit: { enabled: false } })
    const table = new Sql([name], [])
    const largest = JSON.stringify('x'.repeat(LARGEST_BYTES - 2))
    const rows = (count: number, prefix: string, document: string) =>
      Array.from({ length: count }, (_, i) => [`did:web:${prefix}${i}.example`, document, 0])
    await pds.ctx.db.run(sql`INSERT INTO ${table} VALUES ${sqlRows(rows(PAGE_ROWS, 'small', '{}'))}`)
    for (let page = 0; page < 11; page++)
      await pds.ctx.db.run(sql`INSERT INTO ${table} VALUES ${sqlRows(rows(100, `large${page}-`, largest))}`)
    const add = await adder(pds)
    for (let added = 0; added < LOOK_EVERY; added++) await add()
    const kept = await pds.ctx.db.get<{ count: number; bytes: number }>(
      sql`SELECT count(*) AS count, CAST(sum(OCTET_LENGTH(document)) AS BIGINT) AS bytes FROM ${table}`,
    )
    expect(kept!.bytes).toBeLessThan(MAX_BYTES)
    expect(kept!.count).toBeGreaterThan(PAGE_ROWS + 900)
  })
}
