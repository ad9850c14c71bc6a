/** What a repository looks like to code that is not ours, whole and damaged. */
import { expect, test } from 'bun:test'
import { signingKeyOf } from '../../../src/features/identity/account-keys/account-keys.ts'
import { repoHead } from '../../../src/features/data/repo/repo.ts'
import { secondOpinion } from '../../../src/features/data/repo/second-opinion.ts'
import { cidOfCbor } from '../../../src/protocol/cid.ts'
import { formatDidKey } from '../../../src/protocol/keys.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { createAccount, type TestAccount } from '../../support/clients/account.ts'
import { useWorld } from '../../support/world.ts'

let accounts = 0
const { pds } = useWorld()

const post = (n: number) => ({
  $type: 'com.example.note',
  text: `post ${n}`,
  tags: ['é'],
  createdAt: '2026-01-01T00:00:00.000Z',
})

async function joined(posts: number): Promise<TestAccount> {
  const account = await createAccount(pds, `opinion${accounts++}`)
  for (let n = 0; n < posts; n += 100) {
    const writes = Array.from({ length: Math.min(100, posts - n) }, (_, i) => ({
      $type: 'com.atproto.repo.applyWrites#create',
      collection: 'com.example.note',
      rkey: `post${n + i}`,
      value: post(n + i),
    }))
    expect((await account.call('com.atproto.repo.applyWrites', { json: { repo: account.did, writes } })).status).toBe(
      200,
    )
  }
  return account
}

async function opinion({ did }: { did: string }, signer = did): Promise<string[]> {
  const key = (await signingKeyOf(pds.ctx, pds.ctx.db, signer as Did))!
  return pds.ctx.db.snapshot(async (reader) =>
    secondOpinion(reader, (await repoHead(reader, did as Did))!, formatDidKey(key.publicKey)),
  )
}

const repoOf = async ({ did }: TestAccount) => (await repoHead(pds.ctx.db, did as Did))!

test.each([0, 1, 450])('a repository of %i records is whole, also to others', async (posts) => {
  expect(await opinion(await joined(posts))).toEqual([])
})

test('a signature by another key is found', async () => {
  const [alice, bob] = [await joined(3), await joined(0)]
  expect(await opinion(alice, bob.did)).toEqual(['the signature is not from the key of the account'])
})

test('records that are missing, left over or changed are found', async () => {
  const alice = await joined(120)
  const { id } = await repoOf(alice)
  const path = (n: number) => `com.example.note/post${n}`
  await pds.lose('record', { repo_id: id, path: path(7) })
  await pds.damage('record', { repo_id: id, path: path(50) }, { path: 'zzz.zzz.zzz/last' })
  await pds.damage('record', { repo_id: id, path: path(60) }, { value: new Uint8Array([0xa0]) })
  expect((await opinion(alice)).toSorted()).toEqual([
    `record ${path(50)} is missing`,
    `record ${path(60)} does not match its CID`,
    `record ${path(7)} is missing`,
    'record zzz.zzz.zzz/last is not in the tree',
  ])
})

test('a node that is missing, or is another, is found', async () => {
  const alice = await joined(450)
  const { id } = await repoOf(alice)
  const nodes = await pds.rows('repo_node', { repo_id: id }, ['cid', 'bytes'])
  await pds.damage('repo_node', { repo_id: id, cid: nodes[0]!.cid }, { bytes: nodes[1]!.bytes })
  expect((await opinion(alice)).length).toBeGreaterThan(0)
  await pds.lose('repo_node', { repo_id: id, cid: nodes[0]!.cid })
  expect((await opinion(alice)).join()).toContain('block not found')
})

test('a commit that is another than its CID says is found', async () => {
  const alice = await joined(2)
  const { id, commitBlock } = await repoOf(alice)
  const changed = Uint8Array.from(commitBlock)
  changed[changed.length - 1]! ^= 1
  await pds.damage('repo', { id }, { commit_block: changed })
  expect(await opinion(alice)).toContain('the commit does not match its CID')
  await pds.damage('repo', { id }, { head: cidOfCbor(changed).bytes })
  expect(await opinion(alice)).not.toEqual([])
})
