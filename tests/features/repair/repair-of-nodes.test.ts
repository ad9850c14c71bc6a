/** Repairs on a cluster, where events get their numbers after their transactions. */
import { expect, test } from 'bun:test'
import { applyRepair, planRepair, type RepairPlan } from '../../../src/features/operations/repair/repair.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { createAccount } from '../../support/clients/account.ts'
import { allNumbered, holdNumbers } from '../../support/clients/events.ts'
import { useCluster } from '../../support/cluster-world.ts'
import type { Table } from '../../support/tables.ts'

const {
  cluster,
  nodes: [one, other],
} = useCluster(2)

const collection = 'com.example.note'

test('a record that was deleted does not come back because the event of that has no number yet', async () => {
  const alice = await createAccount(other, 'alice')
  const did = alice.did as Did
  const call = async (method: string, more: object) => {
    const json = { repo: did, collection, ...more }
    expect((await alice.call(`com.atproto.repo.${method}`, { json })).status).toBe(200)
  }
  for (const rkey of ['stays', 'goes']) await call('createRecord', { rkey, record: { text: rkey } })
  const [row] = await one.rows('record', { path: `${collection}/goes` })
  await allNumbered(one)

  let plan: RepairPlan
  {
    await using _ = await holdNumbers(cluster.databaseUrl)
    await call('deleteRecord', { rkey: 'goes' })
    await one.plant('record', { ...row! })
    plan = await planRepair(one.ctx, did, {})
    expect(await one.count('unnumbered_event' as Table)).toBe(1)
  }
  try {
    expect(plan).toMatchObject({ losses: [], uncertain: [], brokenEvents: [] })
    expect(plan.steps.join()).toContain('deleted it: it is removed')
    const { faults } = await applyRepair(one.ctx, plan, { acceptLoss: false, keepUncertain: null, blobSource: null })
    expect(faults).toEqual([])
  } finally {
    plan.pool.close()
  }
  const listed = await alice.call(`com.atproto.repo.listRecords?repo=${did}&collection=${collection}`)
  expect(listed.body.records).toMatchObject([{ value: { text: 'stays' } }])
  await allNumbered(one)
})
