/** What a repair holds in memory at a time. */
import { expect, spyOn, test } from 'bun:test'
import { Evidence } from '../../../src/features/operations/repair/evidence.ts'
import { applyRepair, planRepair } from '../../../src/features/operations/repair/repair.ts'
import { maxPage } from '../../../src/features/operations/repair/row-store.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { createAccount } from '../../support/clients/account.ts'
import { atOneNode } from '../../support/turns.ts'
import { useWorld } from '../../support/world.ts'

const { pds } = useWorld({ config: { rateLimit: { enabled: false } } })

const COLLECTION = 'com.example.note'
const RECORDS = 12
const RECORD_BYTES = 800_000

/** Notes the bytes of the largest answer that a snapshot of the database gives. */
function largestAnswer() {
  const { db } = pds.ctx
  const snapshot = db.snapshot.bind(db)
  let largest = 0
  const bytesOf = (rows: readonly object[]) =>
    rows.flatMap((row) => Object.values(row)).reduce((sum, value) => sum + (value?.length ?? 0), 0)
  const spied = spyOn(db, 'snapshot').mockImplementation((work) =>
    snapshot((reader) => {
      const all = async (query: Parameters<typeof reader.all>[0]) => {
        const rows = await reader.all<object>(query)
        largest = Math.max(largest, bytesOf(rows))
        return rows
      }
      return work(Object.assign(Object.create(reader), { all, get: reader.get.bind(reader) }))
    }),
  )
  return { bytes: () => largest, [Symbol.dispose]: () => spied.mockRestore() }
}

test('large records are read, kept and brought back a few at a time', async () => {
  using _ = atOneNode(pds, 'a part of the server is replaced')
  const alice = await createAccount(pds, 'alice')
  for (let i = 0; i < RECORDS; i++) {
    const record = { text: String(i % 10).repeat(RECORD_BYTES) }
    const json = { repo: alice.did, collection: COLLECTION, rkey: `large${i}`, record }
    expect((await alice.call('com.atproto.repo.putRecord', { json })).status).toBe(200)
  }
  const [{ id, commit_block }] = (await pds.rows('repo', { did: alice.did })) as [
    { id: number; commit_block: Uint8Array },
  ]
  await pds.damage('repo', { id }, { commit_block: commit_block.map((byte, at) => (at === 9 ? byte ^ 1 : byte)) })

  using largest = largestAnswer()
  const plan = await planRepair(pds.ctx, alice.did as Did, {})
  const choices = { acceptLoss: false, keepUncertain: null, blobSource: null }
  const { evidence, faults } = await applyRepair(pds.ctx, plan, choices)
  plan.pool.close()
  expect(faults).toEqual([])
  expect(largest.bytes()).toBeGreaterThan(RECORD_BYTES)
  expect(largest.bytes()).toBeLessThan(maxPage.bytes + RECORD_BYTES)

  using kept = new Evidence(evidence)
  const pages = (['record', 'large_record'] as const).flatMap((table) => [...kept.rows(table)])
  const sizes = pages.map((rows) => rows.reduce((sum, { value }) => sum + (value as Uint8Array).length, 0))
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeGreaterThan(RECORDS * RECORD_BYTES)
  expect(Math.max(...sizes)).toBeLessThan(maxPage.bytes + RECORD_BYTES)
})
