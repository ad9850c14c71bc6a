/** Records that SQLite stores apart because they are large are the same as others to whoever reads or writes. */
import { expect, setDefaultTimeout, test } from 'bun:test'
import { readCar } from '@atproto/repo'
import { faultsOfRepo } from '../../../src/features/operations/integrity/repo-check.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { createAccount, xrpc, type TestAccount } from '../../support/clients/account.ts'
import { basic, bearer, request } from '../../support/clients/http.ts'
import { ADMIN_TOKEN } from '../../support/servers/pds.ts'
import { onPostgres } from '../../support/servers/suite.ts'
import { useWorld } from '../../support/world.ts'

// The first server of a process may have to start PostgreSQL.
setDefaultTimeout(60_000)

const { pds } = useWorld({ config: { rateLimit: { enabled: false } } })

const collection = 'com.example.note'
const MAX_BESIDE_KEY = 8192
/** Bytes of a record of ours beside its text. */
const AROUND = 32
const [SMALL, LARGE] = [100, 100_000]

/** The length of the text of each record, by its key. */
type Sizes = Record<string, number>
type Action = [action: 'create' | 'update' | 'delete', rkey: string, size?: number]

const textOf = (rkey: string, size: number): string => rkey.padEnd(size, '-')

async function write({ did, call }: TestAccount, writes: readonly Action[]): Promise<void> {
  const json = {
    repo: did,
    writes: writes.map(([action, rkey, size = 0]) => ({
      $type: `com.atproto.repo.applyWrites#${action}`,
      collection,
      rkey,
      ...(action !== 'delete' && { value: { text: textOf(rkey, size) } }),
    })),
  }
  expect((await call('com.atproto.repo.applyWrites', { json })).status).toBe(200)
}

let accounts = 0
async function joined(sizes: Sizes): Promise<TestAccount> {
  const account = await createAccount(pds, `size${accounts++}`)
  for (const [rkey, size] of Object.entries(sizes)) await write(account, [['create', rkey, size]])
  return account
}

const keysAside = async ({ did }: TestAccount): Promise<string[]> => {
  const [repo] = await pds.rows('repo', { did }, ['id'])
  const rows = await pds.rows('large_record', { repo_id: repo!.id }, ['path'])
  return rows.map(({ path }) => path.split('/')[1]!).toSorted()
}

const read = async (method: string, query: string): Promise<Uint8Array> =>
  (await fetch(`${pds.url}/xrpc/com.atproto.sync.${method}?${query}`)).bytes()

/** The texts of the records, by their keys, and their CIDs, as a list shows them in pieces. */
async function listed({ did }: TestAccount): Promise<Map<string, { text: string; cid: string }>> {
  const found = new Map<string, { text: string; cid: string }>()
  for (let cursor: string | undefined = ''; cursor !== undefined;) {
    const query = new URLSearchParams({ repo: did, collection, limit: '100', reverse: 'true', cursor })
    const { body } = await xrpc(pds, `com.atproto.repo.listRecords?${query}`)
    for (const { uri, value, cid } of body.records) found.set(uri.split('/').at(-1), { text: value.text, cid })
    cursor = body.cursor
  }
  return found
}

/** Every way of reading shows these records, and nothing else is stored. */
async function expectRecords(account: TestAccount, sizes: Sizes): Promise<void> {
  const { did } = account
  const records = await listed(account)
  const wanted = Object.entries(sizes).toSorted(([one], [other]) => (one < other ? -1 : 1))
  expect([...records].map(([rkey, { text }]) => [rkey, text.length])).toEqual(wanted)
  const cids = [...records.values()].map(({ cid }) => cid)
  const archives = [
    await read('getRepo', `did=${did}`),
    await read('getRepo', `did=${did}&since=3aaaaaaaaaaaa`),
    ...(cids.length === 0 ? [] : [await read('getBlocks', `did=${did}&cids=${cids.join('&cids=')}`)]),
  ]
  const cars = await Promise.all(archives.map((bytes) => readCar(bytes)))
  const lengths = (blocks: (typeof cars)[0]['blocks']) =>
    new Map(blocks.entries().map(({ cid, bytes }) => [cid.toString(), bytes.length]))
  const lengthsOf = cars.map(({ blocks }) => lengths(blocks))
  for (const [rkey, { text, cid }] of records) {
    const { body } = await xrpc(pds, `com.atproto.repo.getRecord?repo=${did}&collection=${collection}&rkey=${rkey}`)
    expect(body).toMatchObject({ cid, value: { text: textOf(rkey, text.length) } })
    const proof = await readCar(await read('getRecord', `did=${did}&collection=${collection}&rkey=${rkey}`))
    for (const known of [...lengthsOf, lengths(proof.blocks)])
      expect(known.get(cid)).toBeWithin(text.length, text.length + 40)
  }
  expect(await faultsOfRepo(pds.ctx, did as Did)).toEqual([])
  const large = wanted.filter(([, size]) => size + AROUND > MAX_BESIDE_KEY).map(([rkey]) => rkey)
  expect(await keysAside(account)).toEqual(onPostgres ? [] : large)
}

test('records of every size on both sides of the limit', async () => {
  const sizes = [1, SMALL, 8000, MAX_BESIDE_KEY - AROUND, MAX_BESIDE_KEY - AROUND + 1, 16_384, LARGE, 900_000]
  const records = Object.fromEntries(sizes.map((size) => [`r${size}`, Math.max(size, 8)]))
  await expectRecords(await joined(records), records)
})

test('a record that becomes large, small, other and none', async () => {
  const account = await joined({
    grows: SMALL,
    shrinks: LARGE,
    changes: LARGE,
    goes: LARGE,
    stays: LARGE,
    small: SMALL,
  })
  await write(account, [
    ['update', 'grows', LARGE],
    ['update', 'shrinks', SMALL],
    ['update', 'changes', LARGE + 1],
    ['delete', 'goes'],
    ['create', 'comes', LARGE],
    ['delete', 'small'],
  ])
  const after = { grows: LARGE, shrinks: SMALL, changes: LARGE + 1, stays: LARGE, comes: LARGE }
  await expectRecords(account, after)
  await write(account, [['create', 'goes', SMALL]])
  await write(account, [['update', 'goes', LARGE]])
  await expectRecords(account, { ...after, goes: LARGE })
  await write(
    account,
    ['goes', ...Object.keys(after)].map((rkey) => ['delete', rkey]),
  )
  await expectRecords(account, {})
})

test('putRecord of what is stored changes nothing, and a write that is refused leaves nothing', async () => {
  const account = await joined({ one: LARGE })
  const { did, call } = account
  const put = (size: number, more: object = {}) =>
    call('com.atproto.repo.putRecord', {
      json: { repo: did, collection, rkey: 'one', record: { $type: collection, text: textOf('one', size) }, ...more },
    })
  const [first, second] = [await put(LARGE + 5), await put(LARGE + 5)]
  expect(second.body).toMatchObject({ cid: first.body.cid })
  const cid = first.body.cid.replace(/.$/, (last: string) => (last === 'a' ? 'e' : 'a'))
  expect((await put(SMALL, { swapRecord: cid })).body).toMatchObject({ error: 'InvalidSwap' })
  await expectRecords(account, { one: LARGE + 5 })
})

test('a like in place of a large one', async () => {
  const { did, call } = await createAccount(pds, 'likes')
  const create = (more: object) =>
    call('com.atproto.repo.createRecord', {
      json: {
        repo: did,
        collection: 'app.bsky.graph.follow',
        record: { subject: did, createdAt: '2026-01-01T00:00:00.000Z', ...more },
      },
    })
  for (const more of [{ note: 'x'.repeat(LARGE) }, {}]) expect((await create(more)).status).toBe(200)
  expect(await pds.count('large_record', { repo_id: (await pds.rows('repo', { did }))[0]!.id })).toBe(0)
  expect(await faultsOfRepo(pds.ctx, did as Did)).toEqual([])
})

const importCar = ({ accessJwt }: TestAccount, body: Uint8Array) =>
  request(`${pds.url}/xrpc/com.atproto.repo.importRepo`, {
    method: 'POST',
    body: body as Uint8Array<ArrayBuffer>,
    headers: { 'content-type': 'application/vnd.ipld.car', ...bearer(accessJwt) },
  })

test('an import has large records too, and goes on with what was taken down', async () => {
  const before = { down: LARGE, goes: LARGE, stays: SMALL }
  const account = await joined(before)
  const saved = await read('getRepo', `did=${account.did}`)
  const { cid } = (await listed(account)).get('down')!
  const subject = { $type: 'com.atproto.repo.strongRef', uri: `at://${account.did}/${collection}/down`, cid }
  const takeDown = (applied: boolean) =>
    request(`${pds.url}/xrpc/com.atproto.admin.updateSubjectStatus`, {
      headers: basic('admin', ADMIN_TOKEN),
      json: { subject, takedown: { applied, ref: 'spam' } },
    })
  await takeDown(true)
  await write(account, [
    ['update', 'goes', SMALL],
    ['create', 'after', LARGE],
  ])
  expect((await importCar(account, saved)).status).toBe(200)
  expect([...(await listed(account)).keys()]).toEqual(['goes', 'stays'])
  await takeDown(false)
  await expectRecords(account, before)
  await write(account, [
    ['update', 'goes', SMALL],
    ['delete', 'down'],
  ])
  await expectRecords(account, { goes: SMALL, stays: SMALL })
  await pds.runSweep('abandoned-repos')
  const present = new Set((await pds.rows('repo', {}, ['id'])).map(({ id }) => id))
  const rows = await pds.rows('large_record', {}, ['repo_id'])
  expect(rows.filter((row) => !present.has(row.repo_id))).toEqual([])
})

test('nothing is left of an account that is deleted', async () => {
  const account = await joined({ one: LARGE, other: 900_000, small: SMALL })
  const [{ id }] = (await pds.rows('repo', { did: account.did }, ['id'])) as [{ id: number }]
  await request(`${pds.url}/xrpc/com.atproto.admin.deleteAccount`, {
    headers: bearer(ADMIN_TOKEN),
    json: { did: account.did },
  })
  await pds.runSweep('abandoned-repos')
  expect([await pds.count('record', { repo_id: id }), await pds.count('large_record', { repo_id: id })]).toEqual([0, 0])
})

test('a database that was copied between the two kinds is read, and put right as it is written to', async () => {
  const sizes = { goes: LARGE, shrinks: LARGE, changes: LARGE, stays: LARGE }
  const account = await joined(sizes)
  const [{ id }] = (await pds.rows('repo', { did: account.did }, ['id'])) as [{ id: number }]
  // As the other kind stores it.
  for (const { path, value } of await pds.rows('record', { repo_id: id }))
    if (onPostgres) {
      await pds.plant('large_record', { repo_id: id, path, value })
      await pds.damage('record', { repo_id: id, path }, { value: new Uint8Array() })
    } else {
      const [large] = await pds.rows('large_record', { repo_id: id, path })
      await pds.damage('record', { repo_id: id, path }, { value: large!.value })
      await pds.lose('large_record', { repo_id: id, path })
    }
  await pds.damage('repo', { id }, { has_large: onPostgres ? 1 : 0 })
  expect([...(await listed(account)).values()].map(({ text }) => text.length)).toEqual([LARGE, LARGE, LARGE, LARGE])
  expect(await faultsOfRepo(pds.ctx, account.did as Did)).toEqual([])
  await write(account, [
    ['delete', 'goes'],
    ['update', 'shrinks', SMALL],
    ['update', 'changes', LARGE + 1],
    ['update', 'stays', LARGE + 1],
  ])
  await expectRecords(account, { shrinks: SMALL, changes: LARGE + 1, stays: LARGE + 1 })
})

// Deleting it and storing another one changes 3 pages more, of 11 for a record of 20 kB.
test.skipIf(onPostgres)('a large value that replaces another one is written over it', async () => {
  const account = await joined({ a: LARGE, b: LARGE })
  const [repo] = await pds.rows('repo', { did: account.did }, ['id'])
  // No table declares this column, which those of SQLite have.
  const rowId = 'rowid' as 'path'
  const rowIds = () => pds.rows('large_record', { repo_id: repo!.id }, ['path', rowId])
  const before = await rowIds()
  await write(account, [['update', 'a', LARGE + 1]])
  expect(await rowIds()).toEqual(before)
  await expectRecords(account, { a: LARGE + 1, b: LARGE })
  await write(account, [['update', 'a', SMALL]])
  expect(await keysAside(account)).toEqual(['b'])
  await expectRecords(account, { a: SMALL, b: LARGE })
})
