/** What an account may add to the event log: its write points pay for the bytes of its events too. */
import { expect, test } from 'bun:test'
import { signingKey } from '../../../src/protocol/keys.ts'
import { keyHeight } from '../../../src/protocol/mst-node.ts'
import { nextTid } from '../../../src/protocol/tid.ts'
import { archiveOf } from '../../support/archive.ts'
import { createAccount, type TestAccount } from '../../support/clients/account.ts'
import { allNumbered } from '../../support/clients/events.ts'
import { startPds, type TestPds } from '../../support/servers/pds.ts'

const collection = 'com.example.note'
const foreignKey = signingKey('k256', new Uint8Array(32).fill(9))
/** Bytes that a point pays for. */
const POINT_BYTES = 32 * 1024

const limited = (writePointsHourly: number, writePointsDaily = 0) =>
  startPds({ rateLimit: { writePointsHourly, writePointsDaily } }, { alone: 'a node knows its own points to the last' })

async function frames(pds: TestPds, { did }: TestAccount): Promise<number[]> {
  await allNumbered(pds)
  const events = await pds.rows('repo_seq', { did, event_type: 'commit' }, ['frame'])
  return events.map(({ frame }) => (frame as Uint8Array).length)
}

/** Imports a repository of which all keys are in one node of each layer. Returns a record key of the lowest. */
async function bringWideRepo(account: TestAccount, layers = 1): Promise<string> {
  const rkeys: string[] = []
  for (let layer = 0; layer < layers; layer++)
    for (let i = 0; rkeys.length < 3300 * (layer + 1); i++) {
      const rkey = `${9 - layer}-${i}`.padEnd(500, `${i}-`)
      if (keyHeight(`${collection}/${rkey}`) === layer) rkeys.push(rkey)
    }
  const records = Object.fromEntries(rkeys.map((rkey) => [`${collection}/${rkey}`, { $type: collection }]))
  const { bytes } = archiveOf(account.did, nextTid(null, Date.now() * 1000, 7), records, foreignKey)
  const { status } = await account.call('com.atproto.repo.importRepo', {
    method: 'POST',
    headers: { 'content-type': 'application/vnd.ipld.car' },
    body: bytes as Uint8Array<ArrayBuffer>,
  })
  expect(status).toBe(200)
  return rkeys[0]!
}

const put = async ({ did, call }: TestAccount, rkey: string, note: string) => {
  const { status, headers } = await call('com.atproto.repo.putRecord', {
    json: { repo: did, collection, rkey, record: { note } },
  })
  return { status, left: Number(headers.get('ratelimit-remaining')) }
}

test('record keys that are chosen for it do not let small writes fill the event log', async () => {
  await using pds = await limited(200)
  const mallory = await createAccount(pds, 'mallory')
  const rkey = await bringWideRepo(mallory)
  const before = (await frames(pds, mallory)).length
  let writes = 0
  for (; writes < 100 && (await put(mallory, rkey, `${writes}`)).status === 200; writes++);
  const events = (await frames(pds, mallory)).slice(before)
  expect(events).toHaveLength(writes)
  const [largest, all] = [Math.max(...events), events.reduce((sum, bytes) => sum + bytes)]
  expect(largest).toBeGreaterThan(1_500_000)
  expect(all).toBeLessThan(200 * POINT_BYTES + largest)
})

test('a large event takes the points of its bytes, which are told, and no more than are left', async () => {
  await using pds = await limited(40)
  const bob = await createAccount(pds, 'bob')
  const small = await put(bob, 'small', 'x')
  expect(small).toEqual({ status: 200, left: 38 })
  const large = await put(bob, 'large', 'x'.repeat(500_000))
  expect(large.status).toBe(200)
  expect(large.left).toBe(38 - Math.ceil((await frames(pds, bob)).at(-1)! / POINT_BYTES))
  expect(await put(bob, 'larger', 'x'.repeat(900_000))).toEqual({ status: 200, left: 0 })
  expect((await put(bob, 'none', 'x')).status).toBe(429)
})

test('a write whose event would be too large takes the points of the largest event', async () => {
  await using pds = await limited(200)
  const mallory = await createAccount(pds, 'mallory')
  const rkey = await bringWideRepo(mallory, 2)
  const refused = await put(mallory, rkey, 'x')
  expect(refused).toEqual({ status: 400, left: 200 - Math.ceil(2_000_000 / POINT_BYTES) })
})

test('ordinary writes take what they always took, however many are in a commit', async () => {
  await using pds = await limited(1000)
  const { did, call } = await createAccount(pds, 'carol')
  const writes = Array.from({ length: 200 }, (_, i) => ({
    $type: 'com.atproto.repo.applyWrites#create',
    collection,
    rkey: `note${i}`,
    value: { note: 'x'.repeat(1000) },
  }))
  const { status, headers } = await call('com.atproto.repo.applyWrites', { json: { repo: did, writes } })
  expect([status, headers.get('ratelimit-remaining')]).toEqual([200, '400'])
})

test('the points of a day pay for bytes as those of an hour do', async () => {
  await using pds = await limited(1000, 20)
  const dave = await createAccount(pds, 'dave')
  expect(await put(dave, 'large', 'x'.repeat(900_000))).toEqual({ status: 200, left: 0 })
  expect((await put(dave, 'next', 'x')).status).toBe(429)
})
