/** Large records of a database from before they were stored apart. */
import { expect, test } from 'bun:test'
import { faultsOfRepo } from '../../../src/features/operations/integrity/repo-check.ts'
import { Sql } from '../../../src/platform/database/database.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { createAccount, xrpc, type TestAccount } from '../../support/clients/account.ts'
import { beforeLargeRecords } from '../../support/earlier-tables.ts'
import { useWorldOnFile } from '../../support/file-world.ts'

const { pds } = useWorldOnFile({ config: { rateLimit: { enabled: false } } })

const collection = 'com.example.note'
const put = async ({ did, call }: TestAccount, rkey: string, size: number): Promise<void> => {
  const json = { repo: did, collection, rkey, record: { text: 'x'.repeat(size) } }
  expect((await call('com.atproto.repo.putRecord', { json })).status).toBe(200)
}
const archiveOf = async ({ did }: TestAccount): Promise<Buffer> =>
  Buffer.from(await (await fetch(`${pds.url}/xrpc/com.atproto.sync.getRepo?did=${did}`)).arrayBuffer())

test('the first start sets them aside, and nobody sees a difference', async () => {
  const [heavy, light] = [await createAccount(pds, 'heavy'), await createAccount(pds, 'light')]
  const sizes = [10, 8000, 8192, 9000, 100_000, 900_000]
  for (let i = 0; i < 60; i++) await put(heavy, `r${i}`, sizes[i % sizes.length]!)
  for (let i = 0; i < 60; i++) await put(light, `r${i}`, 100)
  const archives = [await archiveOf(heavy), await archiveOf(light)]
  const aside = await pds.rows('large_record')
  const rows = await pds.rows('record')
  expect(aside).toHaveLength(40)

  for (const statement of beforeLargeRecords) await pds.ctx.db.run(new Sql([statement], []))
  const before = await pds.rows('record')
  expect(before.filter(({ value }) => value.length > 8192)).toHaveLength(40)
  await pds.restart()

  expect(await pds.rows('large_record')).toEqual(aside)
  expect(await pds.rows('record')).toEqual(rows)
  const notes = await Promise.all([heavy, light].map(({ did }) => pds.rows('repo', { did }, ['has_large'])))
  expect(notes.flat()).toEqual([{ has_large: 1 }, { has_large: 0 }])
  for (const [i, account] of [heavy, light].entries()) {
    expect((await archiveOf(account)).equals(archives[i]!)).toBe(true)
    expect(await faultsOfRepo(pds.ctx, account.did as Did)).toEqual([])
  }
  const { body } = await xrpc(pds, `com.atproto.repo.getRecord?repo=${heavy.did}&collection=${collection}&rkey=r5`)
  expect(body.value.text).toHaveLength(900_000)
  await put(heavy, 'r5', 10)
  expect(await pds.count('large_record')).toBe(39)
})
