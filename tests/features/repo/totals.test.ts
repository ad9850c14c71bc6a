/** The numbers of records and blocks that a repository keeps. */
import { expect, test } from 'bun:test'
import { readCarWithRoot } from '@atproto/repo'
import { createAccount, type TestAccount } from '../../support/clients/account.ts'
import { until } from '../../support/until.ts'
import { useWorld } from '../../support/world.ts'

const { pds } = useWorld({ config: { rateLimit: { enabled: false } } })

const statusOf = async (account: TestAccount) => {
  const { status, body } = await account.call('com.atproto.server.checkAccountStatus')
  expect(status).toBe(200)
  return { records: body.indexedRecords as number, blocks: body.repoBlocks as number }
}

async function write(account: TestAccount, from: number, to: number, kind: 'create' | 'delete' = 'create') {
  for (let at = from; at < to; at += 200) {
    const writes = Array.from({ length: Math.min(200, to - at) }, (_, i) => ({
      $type: `com.atproto.repo.applyWrites#${kind}`,
      collection: 'com.example.note',
      rkey: `note${at + i}`,
      ...(kind === 'create' && { value: { text: `note ${at + i}` } }),
    }))
    const json = { repo: account.did, writes }
    expect((await account.call('com.atproto.repo.applyWrites', { json })).status).toBe(200)
  }
}

/** The number of blocks that others get. */
async function counted(account: TestAccount) {
  const car = await fetch(`${pds.url}/xrpc/com.atproto.sync.getRepo?did=${account.did}`)
  return (await readCarWithRoot(new Uint8Array(await car.arrayBuffer()))).blocks.size
}

const keptIn = async ({ did }: TestAccount) => {
  const [row] = await pds.rows('repo', { did })
  return {
    records: (row!.counted_rev ?? row!.nodes_rev) === row!.rev && row!.record_count,
    nodes: row!.nodes_rev === row!.rev && row!.node_count,
  }
}

test('the numbers are those of what is stored, after writes, deletions and a new signature', async () => {
  const ann = await createAccount(pds, 'ann')
  expect(await statusOf(ann)).toEqual({ records: 0, blocks: await counted(ann) })
  await write(ann, 0, 450)
  expect(await statusOf(ann)).toEqual({ records: 450, blocks: await counted(ann) })
  await write(ann, 100, 300, 'delete')
  expect(await statusOf(ann)).toEqual({ records: 250, blocks: await counted(ann) })
  expect((await ann.call('com.atproto.server.deactivateAccount', { json: {} })).status).toBe(200)
  expect((await ann.call('com.atproto.server.activateAccount', { method: 'POST' })).status).toBe(200)
  const blocks = await counted(ann)
  expect(await statusOf(ann)).toEqual({ records: 250, blocks })
  expect(await keptIn(ann)).toEqual({ records: 250, nodes: blocks - 251 })
})

test('the number of records that an earlier version kept is believed if it is that of the present revision', async () => {
  const fred = await createAccount(pds, 'fred')
  await write(fred, 0, 20)
  const { id, rev } = (await pds.rows('repo', { did: fred.did }))[0]!
  await pds.damage('repo', { id }, { record_count: 7, counted_rev: '3jzfcijpj2z2a' })
  expect(await statusOf(fred)).toMatchObject({ records: 20 })
  await pds.damage('repo', { id }, { record_count: 20, counted_rev: rev })
  await write(fred, 20, 25)
  expect(await statusOf(fred)).toEqual({ records: 25, blocks: await counted(fred) })
  expect((await keptIn(fred)).records).toBe(25)
})

test('a repository from before the numbers were kept is counted once', async () => {
  const old = await createAccount(pds, 'former')
  await write(old, 0, 30)
  const { id } = (await pds.rows('repo', { did: old.did }))[0]!
  await pds.damage('repo', { id }, { record_count: null, counted_rev: null, node_count: null, nodes_rev: null })
  await write(old, 30, 31)
  expect(await keptIn(old)).toEqual({ records: null, nodes: null })
  const blocks = await counted(old)
  expect(await statusOf(old)).toEqual({ records: 31, blocks })
  await until(async () => (await keptIn(old)).records === 31)
  expect(await keptIn(old)).toEqual({ records: 31, nodes: blocks - 32 })
  await write(old, 31, 35)
  expect(await statusOf(old)).toEqual({ records: 35, blocks: await counted(old) })
})
