/** Each column of each table that repositories consist of, damaged on purpose: the running check finds it. */
import { expect, test } from 'bun:test'
import { readCar } from '@atproto/repo'
import { unthrottled } from '../../../src/base/pace.ts'
import { spaceFaults } from '../../../src/features/data/spaces/spaces.ts'
import { faultsOfRepo } from '../../../src/features/operations/integrity/repo-check.ts'
import { tablesOf } from '../../../src/platform/database/catalog.ts'
import type { Reader, Sql } from '../../../src/platform/database/database.ts'
import { encode } from '../../../src/protocol/cbor.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { createAccount, type TestAccount } from '../../support/clients/account.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { Uploader } from '../../support/clients/uploader.ts'
import { ADMIN_TOKEN } from '../../support/servers/pds.ts'
import { onPostgres } from '../../support/servers/suite.ts'
import { Stored } from '../../support/stored-blobs.ts'
import type { Table, Tables } from '../../support/tables.ts'
import { until } from '../../support/until.ts'
import { useWorld } from '../../support/world.ts'

const ROUND_SECS = 3600
const { pds } = useWorld({
  config: {
    integrity: { roundSecs: ROUND_SECS, cpuPercent: 100 },
    rateLimit: { enabled: false },
    spaces: { enabled: true },
  },
})

/** How a damage of the column is found, or why it cannot be: nothing else says what it says. */
type Columns = Readonly<Record<string, Damage | string>>
type Damage = (account: Damaged) => Promise<void>
interface Damaged extends TestAccount {
  id: number
  spaceId: number
  cid: string
}

const flipped = (bytes: Uint8Array, at = bytes.length - 1): Uint8Array => {
  const changed = Uint8Array.from(bytes)
  changed[at]! ^= 1
  return changed
}

const otherCid = (cid: string): string => cid.replace(/.$/, (last) => (last === 'a' ? 'e' : 'a'))

const NOTE = 'com.example.note/note7'
const NOVEL = 'com.example.note/novel'
const LATER_NOTE = 'com.example.note/later'
const FUTURE = '3zzzzzzzzzzzz'
const FOLLOW = '3jzfcijpj2z2a'

/** Damages a column of the first of the rows. */
async function spoil<Of extends Table, Name extends keyof Tables[Of] & string>(
  table: Of,
  where: Partial<Tables[Of]>,
  column: Name,
  change: (value: Tables[Of][Name]) => unknown,
): Promise<void> {
  const [row] = await pds.rows(table, where)
  const value = (row as Tables[Of])[column]
  await pds.damage(table, { ...where, [column]: value } as Partial<Tables[Of]>, { [column]: change(value) } as never)
}

/** The same, for all rows: some nodes are no longer in the tree, and are deleted later. */
async function spoilAll<Of extends Table, Name extends keyof Tables[Of] & string>(
  table: Of,
  where: Partial<Tables[Of]>,
  column: Name,
  change: (value: Tables[Of][Name]) => unknown,
): Promise<void> {
  for (const row of await pds.rows(table, where)) {
    const value = (row as Tables[Of])[column]
    await pds.damage(table, { ...where, [column]: value } as Partial<Tables[Of]>, { [column]: change(value) } as never)
  }
}

const repoOf = ({ id }: Damaged) => ({ id })
const noteOf = ({ id }: Damaged) => ({ repo_id: id, path: NOTE })
const novelOf = ({ id }: Damaged) => ({ repo_id: id, path: NOVEL })
const nodesOf = ({ id }: Damaged) => ({ repo_id: id })
const commitsOf = ({ did }: Damaged) => ({ did, event_type: 'commit' })
const spaceOf = ({ spaceId }: Damaged) => ({ id: spaceId })
const spaceRecordsOf = ({ spaceId }: Damaged) => ({ space_repo_id: spaceId })

const tables: Readonly<Record<string, Columns>> = {
  repo: {
    async id(account) {
      // SQLite gives the highest number again.
      await createAccount(pds, `after${account.id}`)
      await pds.lose('repo', repoOf(account))
    },
    did: (account) => pds.damage('repo', repoOf(account), { did: null }),
    rev: (account) => pds.damage('repo', repoOf(account), { rev: '3aaaaaaaaaaaa' }),
    head: (account) => spoil('repo', repoOf(account), 'head', flipped),
    data: (account) => spoil('repo', repoOf(account), 'data', flipped),
    commit_block: (account) => spoil('repo', repoOf(account), 'commit_block', (bytes) => flipped(bytes, 40)),
    fresh: (account) => spoil('repo', repoOf(account), 'fresh', flipped),
    record_count: (account) => pds.damage('repo', repoOf(account), { record_count: 1 }),
    node_count: (account) => pds.damage('repo', repoOf(account), { node_count: 1 }),
    staged_until: 'is read only while no account has the repository',
    counted_rev: 'says whether the number is believed: one that is not is counted',
    nodes_rev: 'says whether the number is believed: one that is not is counted',
    unlisted_count: 'says when records are next put into the other index',
    has_large: (account) => pds.damage('repo', repoOf(account), { has_large: 0 }),
    takedowns: 'changes whenever what is read may differ; its value means nothing',
  },
  repo_node: {
    repo_id: (account) => spoil('repo_node', nodesOf(account), 'repo_id', () => 999_999),
    cid: (account) => spoilAll('repo_node', nodesOf(account), 'cid', flipped),
    rev: (account) => spoil('repo_node', nodesOf(account), 'rev', () => FUTURE),
    bytes: (account) => spoilAll('repo_node', nodesOf(account), 'bytes', flipped),
    framing: (account) => pds.damage('repo_node', nodesOf(account), { framing: null }),
  },
  record: {
    repo_id: (account) => pds.damage('record', noteOf(account), { repo_id: 999_999 }),
    path: (account) => pds.damage('record', noteOf(account), { path: 'com.example.note/zzz' }),
    cid: (account) => spoil('record', noteOf(account), 'cid', flipped),
    rev: (account) => pds.damage('record', noteOf(account), { rev: FUTURE }),
    value: (account) => spoil('record', noteOf(account), 'value', flipped),
    framing: (account) => pds.damage('record', noteOf(account), { framing: null }),
    subject: ({ id }) =>
      pds.damage('record', { repo_id: id, path: `app.bsky.graph.follow/${FOLLOW}` }, { subject: 'did:web:other.test' }),
    unlisted: 'says in which of two indices a record is; searches look into both',
    indexed_at: 'is written nowhere else',
    takedown_ref: 'is written nowhere else; cases say who took a record down, and operators may without one',
  },
  large_record: {
    repo_id: (account) => pds.damage('large_record', novelOf(account), { repo_id: 999_999 }),
    path: (account) => pds.damage('large_record', novelOf(account), { path: 'com.example.note/zzz' }),
    value: (account) => spoil('large_record', novelOf(account), 'value', flipped),
  },
  repo_seq: {
    async seq(account) {
      const { seq } = (await pds.rows('repo_seq', commitsOf(account), ['seq'])).at(-2)!
      await pds.damage('repo_seq', { seq }, { seq: -seq })
    },
    did: (account) => spoil('repo_seq', commitsOf(account), 'did', () => 'did:plc:aaaaaaaaaaaaaaaaaaaaaaaa'),
    event_type: (account) => spoil('repo_seq', commitsOf(account), 'event_type', () => 'sync'),
    sequenced_at: (account) => spoil('repo_seq', commitsOf(account), 'sequenced_at', (at) => at + 1),
    frame: (account) => spoil('repo_seq', commitsOf(account), 'frame', (bytes) => flipped(bytes, bytes.length >> 1)),
  },
  repo_seq_run: {
    run: 'is empty on PostgreSQL; on SQLite, an event that its account does not find is told',
    did: 'as `run`',
    seq: 'as `run`',
  },
  repo_seq_past: {
    spent_through: 'says more than the log only when that is empty',
    pruned_through: 'what the log has lost by age is written nowhere else',
    listed_through: 'the list is added to until there',
  },
  unnumbered_event: Object.fromEntries(
    ['id', 'did', 'event_type', 'erases', 'written_at', 'head', 'middle', 'rest'].map((column) => [
      column,
      'rows are there for milliseconds; the event that is made of them is checked',
    ]),
  ),
  blob: {
    did: async ({ did, cid }) => {
      await pds.lose('blob', { did, cid })
      await pds.runSweep('blob-scrub')
    },
    cid: async ({ did, cid }) => {
      await pds.damage('blob', { did, cid }, { cid: otherCid(cid) })
      await pds.runSweep('blob-scrub')
    },
    size: async ({ did, cid }) => {
      await pds.damage('blob', { did, cid }, { size: 1 })
      await pds.runSweep('blob-scrub')
    },
    unreferenced_at: ({ did, cid }) => pds.damage('blob', { did, cid }, { unreferenced_at: 1 }),
    mime_type: 'is what the bytes were taken for when they arrived',
    uploaded_at: 'is written nowhere else',
    takedown_ref: 'is written nowhere else',
  },
  blob_reference: {
    did: ({ did, cid }) => pds.damage('blob_reference', { did, cid }, { did: 'did:web:other.test' }),
    cid: ({ did, cid }) => pds.damage('blob_reference', { did, cid }, { cid: otherCid(cid) }),
    record: ({ did, cid }) => pds.damage('blob_reference', { did, cid }, { record: NOTE }),
    rev: 'is written nowhere else: a record that was imported has that of its import',
  },
  blob_fault: { cid: 'what the scrub found', fault: 'what the scrub found', found_at: 'what the scrub found' },
  blob_quarantine: Object.fromEntries(
    ['did', 'cid', 'placed_at', 'ends_at', 'then_ref'].map((column) => [column, 'is written nowhere else']),
  ),
  blob_reconciled: { did: 'a place to continue from', rev: 'a place to continue from' },
  blob_removal: Object.fromEntries(
    ['cid', 'unowned_at', 'taken_at', 'taker', 'removed_at'].map((column) => [
      column,
      'work to be done; what has an owner is not removed',
    ]),
  ),
  space_repo: {
    id: (account) => spoil('space_repo', spaceOf(account), 'id', () => 999_999),
    did: (account) => pds.damage('space_repo', spaceOf(account), { did: null }),
    space: (account) => spoil('space_repo', spaceOf(account), 'space', (space) => `${space}x`),
    rev: (account) => pds.damage('space_repo', spaceOf(account), { rev: '3aaaaaaaaaaaa' }),
    record_count: (account) => pds.damage('space_repo', spaceOf(account), { record_count: 99 }),
    state: (account) => spoil('space_repo', spaceOf(account), 'state', flipped),
    authority: 'is a part of the URI, for lists',
    type: 'is a part of the URI, for lists',
  },
  space_record: {
    space_repo_id: (account) => spoil('space_record', spaceRecordsOf(account), 'space_repo_id', () => 999_999),
    path: (account) => spoil('space_record', spaceRecordsOf(account), 'path', (path) => `${path}x`),
    cid: (account) => spoil('space_record', spaceRecordsOf(account), 'cid', flipped),
    rev: (account) => spoil('space_record', spaceRecordsOf(account), 'rev', () => FUTURE),
    value: (account) => spoil('space_record', spaceRecordsOf(account), 'value', flipped),
  },
  space_op: {
    space_repo_id: (account) =>
      spoil('space_op', { ...spaceRecordsOf(account), idx: 1 }, 'space_repo_id', () => 999_999),
    rev: (account) => spoil('space_op', spaceRecordsOf(account), 'rev', () => FUTURE),
    idx: (account) => pds.damage('space_op', { ...spaceRecordsOf(account), idx: 1 }, { idx: 7 }),
    path: (account) => spoil('space_op', spaceRecordsOf(account), 'path', (path) => `${path}x`),
    cid: (account) => spoil('space_op', spaceRecordsOf(account), 'cid', (cid) => flipped(cid!)),
    prev: (account) => pds.damage('space_op', { ...spaceRecordsOf(account), idx: 2 }, { prev: null }),
    prev_rev: (account) =>
      pds.damage('space_op', { ...spaceRecordsOf(account), path: LATER_NOTE }, { prev_rev: '3aaaaaaaaaaaa' }),
  },
  space_place: {
    id: (account) => spoil('space_place', spaceOf(account), 'id', () => 777_777),
    did: (account) => pds.damage('space_place', spaceOf(account), { did: null }),
    space: (account) => spoil('space_place', spaceOf(account), 'space', (space) => `${space}x`),
  },
  space_blob_reference: {
    did: ({ did }) => spoil('space_blob_reference', { did }, 'did', () => 'did:web:other.test'),
    cid: ({ did }) => spoil('space_blob_reference', { did }, 'cid', (cid) => otherCid(cid)),
    space: ({ did }) => spoil('space_blob_reference', { did }, 'space', (space) => `${space}x`),
    record: ({ did }) => spoil('space_blob_reference', { did }, 'record', (record) => `${record}x`),
    rev: 'is written nowhere else',
  },
}

/** Tables of repositories and blobs, by what they are called or by what they have. */
const isOfRepositories = ({ name, columns }: { name: string; columns: readonly string[] }): boolean =>
  /^(repo|record|large_record|blob|space|unnumbered)(_|$)/.test(name) ||
  columns.some((column) => ['repo_id', 'space_repo_id', 'rev', 'rkey'].includes(column))

test('every column of every table that repositories consist of is damaged here, or nothing else says what it says', async () => {
  const shapes = [...(await tablesOf(pds.ctx.db)).values()].filter(isOfRepositories)
  const found = shapes.flatMap(({ name, columns }) => columns.map((column) => `${name}.${column}`))
  const named = Object.entries(tables).flatMap(([name, columns]) =>
    Object.keys(columns).map((column) => `${name}.${column}`),
  )
  expect(named.toSorted()).toEqual(found.toSorted())
})

let accounts = 0
async function joined(): Promise<Damaged> {
  const account = await createAccount(pds, `column${accounts++}`)
  const { did, call, accessJwt } = account
  const writes = Array.from({ length: 150 }, (_, i) => ({
    $type: 'com.atproto.repo.applyWrites#create',
    collection: 'com.example.note',
    rkey: `note${i}`,
    value: { text: `note ${i}` },
  }))
  const image = await Uploader.at(pds, did as Did, accessJwt).upload(`image of ${did}`, 'image/png')
  const record = async (collection: string, rkey: string, value: object) =>
    expect(
      (await call('com.atproto.repo.createRecord', { json: { repo: did, collection, rkey, record: value } })).status,
    ).toBe(200)
  expect((await call('com.atproto.repo.applyWrites', { json: { repo: did, writes } })).status).toBe(200)
  for (const more of [1, 2]) await record('com.example.note', `more${more}`, {})
  const createdAt = '2026-01-01T00:00:00.000Z'
  await record('app.bsky.graph.follow', FOLLOW, { $type: 'app.bsky.graph.follow', subject: did, createdAt })
  await record('com.example.note', 'novel', { text: 'x'.repeat(100_000) })
  await record('com.example.note', 'image', { image })
  const space = `at://${did}/space/com.example.space/a`
  const inSpace = async (operations: object[]) =>
    expect(
      (await call('com.atproto.space.applyWrites', { json: { space, repo: did, writes: operations } })).status,
    ).toBe(200)
  const operation = (action: string, rkey: string, value: object) => ({
    $type: `com.atproto.space.applyWrites#${action}`,
    collection: 'com.example.note',
    rkey,
    value,
  })
  await inSpace([operation('create', 'a', { image }), operation('create', 'b', {}), operation('update', 'b', { n: 1 })])
  await inSpace([operation('create', 'later', {})])
  const [repo] = await pds.rows('repo', { did })
  if (onPostgres) await asCopied(repo!.id)
  const [spaceRepo] = await pds.rows('space_repo', { did })
  return { ...account, id: repo!.id, spaceId: spaceRepo!.id, cid: image.ref.$link }
}

/** Stores the novel as in a database that was copied from SQLite. */
async function asCopied(repoId: number): Promise<void> {
  const where = { repo_id: repoId, path: NOVEL }
  const [{ value }] = (await pds.rows('record', where, ['value'])) as [{ value: Uint8Array }]
  await pds.plant('large_record', { ...where, value })
  await pds.damage('record', where, { value: new Uint8Array() })
  await pds.damage('repo', { id: repoId }, { has_large: 1 })
}

interface View {
  round: { endedAt: string | null }
  damaged: { did: string; faults: string[] }[]
}
const view = async () => (await request(`${pds.url}/v1/admin/integrity`, { headers: bearer(ADMIN_TOKEN) })).body as View

/** What the next round finds of the events of the account. */
async function faultsOfLog(): Promise<string[]> {
  pds.clock.advance({ secs: ROUND_SECS })
  do await pds.runSweep('integrity')
  while ((await view()).round.endedAt === null)
  return (await view()).damaged.flatMap(({ faults }) => faults.filter((fault) => fault.startsWith('event ')))
}

test.each(Object.entries(tables['repo_seq']!) as [string, Damage][])(
  'damage of an event in the column %s is found',
  async (_, damage) => {
    const account = await joined()
    await until(async () => (await pds.count('unnumbered_event' as Table)) === 0)
    const before = await faultsOfLog()
    await damage(account)
    expect((await faultsOfLog()).length).toBeGreaterThan(before.length)
  },
)

test('a large value is found that is lost, that no record has, or that a record has which is not large', async () => {
  const [lost, left, doubled] = [await joined(), await joined(), await joined()]
  await pds.lose('large_record', novelOf(lost))
  const { did, call } = left
  const value = new Uint8Array(10_000)
  for (const path of ['com.example.note/none', NOTE]) await pds.plant('large_record', { ...novelOf(left), path, value })
  await pds.plant('large_record', { ...novelOf(doubled), path: NOTE, value })
  const faultsOf = (account: TestAccount) => faultsOfRepo(pds.ctx, account.did as Did)
  const stray = (path: string) => `a large value is stored at ${path}, but no record there refers to it`
  expect(await faultsOf(lost)).toEqual([
    `record ${NOVEL} would be unreadable in an archive`,
    `record ${NOVEL} does not match its CID`,
  ])
  expect((await faultsOf(left)).toSorted()).toEqual([stray('com.example.note/none'), stray(NOTE)].toSorted())
  expect(await faultsOf(doubled)).toEqual([stray(NOTE)])
  // Nobody is shown other bytes, and a write to the same place puts it right.
  const json = { repo: did, collection: 'com.example.note', rkey: 'none', record: { text: 'x'.repeat(20_000) } }
  expect((await call('com.atproto.repo.createRecord', { json })).status).toBe(200)
  expect((await call('com.atproto.repo.putRecord', { json: { ...json, rkey: 'note7', record: {} } })).status).toBe(200)
  await until(async () => (await pds.count('unnumbered_event' as Table)) === 0)
  expect(await faultsOf(left)).toEqual(onPostgres ? [stray('com.example.note/none')] : [])
  // The archive of the other lacks one record, and can be read.
  const archive = await (await fetch(`${pds.url}/xrpc/com.atproto.sync.getRepo?did=${lost.did}`)).bytes()
  expect((await readCar(archive)).blocks.size).toBeGreaterThan(150)
})

test('an event that is lost is found, by those that follow it or because it is due', async () => {
  const account = await joined()
  await until(async () => (await pds.count('unnumbered_event' as Table)) === 0)
  const commits = await pds.rows('repo_seq', { did: account.did, event_type: 'commit' }, ['seq'])
  const before = await faultsOfLog()
  await pds.lose('repo_seq', { seq: commits.at(-2)!.seq })
  expect((await faultsOfLog()).length).toBeGreaterThan(before.length)
  pds.clock.advance({ secs: 1800 })
  const late = await joined()
  await until(async () => (await pds.count('unnumbered_event' as Table)) === 0)
  const last = (await pds.rows('repo_seq', { did: late.did, event_type: 'commit' }, ['seq'])).at(-1)!
  await pds.lose('repo_seq', { seq: last.seq })
  expect((await faultsOfRepo(pds.ctx, late.did as Did)).join()).toContain('the event log lacks the event of revision')
})

test.skipIf(onPostgres)('an event that its account does not find is told', async () => {
  const account = await joined()
  const [event] = await pds.rows('repo_seq', { did: account.did }, ['seq'])
  const before = await faultsOfLog()
  await pds.damage('repo_seq_past', {}, { listed_through: event!.seq })
  await pds.lose('repo_seq_run', { did: account.did })
  expect((await faultsOfLog()).slice(before.length).join()).toContain('not in the list of the events')
})

test('an event that is in the log twice is found', async () => {
  const account = await joined()
  await until(async () => (await pds.count('unnumbered_event' as Table)) === 0)
  const before = await faultsOfLog()
  const [commit] = await pds.rows('repo_seq', { did: account.did, event_type: 'commit' })
  const last = (await pds.rows('repo_seq', {}, ['seq'])).at(-1)!
  await pds.plant('repo_seq', { ...commit, seq: Number(last.seq) + 1 })
  expect((await faultsOfLog()).length).toBeGreaterThan(before.length)
})

test('a node that is in no tree is found', async () => {
  const [account, other] = [await joined(), await joined()]
  const writes = Array.from({ length: 100 }, (_, i) => ({
    $type: 'com.atproto.repo.applyWrites#create',
    collection: 'com.example.other',
    rkey: `other${i}`,
    value: {},
  }))
  for (let times = 0; times < 2; times++)
    await other.call('com.atproto.repo.applyWrites', {
      json: { repo: other.did, writes: writes.slice(50 * times, 50 * times + 50) },
    })
  const own = new Set((await pds.rows('repo_node', { repo_id: account.id })).map(({ cid }) => cid.toString()))
  const node = (await pds.rows('repo_node', { repo_id: other.id })).find(({ cid }) => !own.has(cid.toString()))!
  expect(await faultsOfRepo(pds.ctx, account.did as Did)).toEqual([])
  await pds.plant('repo_node', { ...node, repo_id: account.id })
  expect((await faultsOfRepo(pds.ctx, account.did as Did)).join()).toContain('node')
})

test.each(['signing_key', 'signing_key_wrapped'] as const)(
  'damage of the column %s of an account is found',
  async (column) => {
    const account = await joined()
    await spoil('account', { did: account.did }, column, (key) =>
      key.replace(/.{2}$/, (end) => (end === 'AA' ? 'BB' : 'AA')),
    )
    await faultsOfLog()
    expect((await view()).damaged.find(({ did }) => did === account.did)?.faults).not.toBeEmpty()
  },
)

test('while a record may be lost, no blob of its account is deleted, nor a reference to one', async () => {
  const account = await joined()
  const { did, cid, id } = account
  await pds.damage('record', { repo_id: id, path: 'com.example.note/image' }, { path: 'com.example.note/imagf' })
  await pds.lose('record', { repo_id: id, path: 'com.example.note/imagf' })
  await account.call('com.atproto.repo.createRecord', {
    json: { repo: did, collection: 'com.example.note', record: {} },
  })
  await until(async () => (await pds.count('unnumbered_event' as Table)) === 0)
  await pds.runSweep('integrity')
  pds.clock.advance({ secs: 30 * 86_400 })
  await pds.runSweep('blob-gc')
  expect(await pds.count('blob_reference', { did, cid })).toBe(1)
  expect(await pds.count('blob', { did, cid })).toBe(1)
})

test('while the newest records may be lost, their blobs stay, however many they are', async () => {
  const account = await joined()
  const { did, id, accessJwt } = account
  const [before] = await pds.rows('repo', { id })
  const uploader = Uploader.at(pds, did as Did, accessJwt)
  const rkeys = Array.from({ length: 25 }, (_, i) => `late${i}`)
  const writes = await Promise.all(
    rkeys.map(async (rkey) => ({
      $type: 'com.atproto.repo.applyWrites#create',
      collection: 'com.example.note',
      rkey,
      value: { image: await uploader.upload(`${rkey} of ${did}`, 'image/png') },
    })),
  )
  expect((await account.call('com.atproto.repo.applyWrites', { json: { repo: did, writes } })).status).toBe(200)
  await until(async () => (await pds.count('unnumbered_event' as Table)) === 0)
  // The repository is as it was before, and the event log is not.
  const { id: _, ...columns } = before!
  await pds.damage('repo', { id }, columns)
  for (const rkey of rkeys) await pds.lose('record', { repo_id: id, path: `com.example.note/${rkey}` })
  expect((await faultsOfRepo(pds.ctx, did as Did)).slice(0, 25).join()).not.toContain('the event log')
  await pds.runSweep('integrity')
  for (let pass = 0; pass < 2; pass++) {
    pds.clock.advance({ secs: 30 * 86_400 })
    await pds.runSweep('blob-gc')
  }
  expect(await pds.count('blob', { did })).toBe(26)
})

test('large records in spaces are read one by one', async () => {
  const { did, spaceId } = await joined()
  const [row] = await pds.rows('space_record', { space_repo_id: spaceId })
  const value = encode({ $type: 'com.example.note', text: 'x'.repeat(100_000) })
  for (let i = 0; i < 20; i++) await pds.plant('space_record', { ...row!, path: `com.example.note/large${i}`, value })
  const { db } = pds.ctx
  const read: number[] = []
  const reader: Reader = {
    get: (query) => db.get(query),
    async all<Row>(query: Sql) {
      const rows = await db.all<Row & { value?: unknown }>(query)
      read.push(rows.reduce((sum, each) => sum + (each.value instanceof Uint8Array ? each.value.length : 0), 0))
      return rows
    },
  }
  const whole = { throttled: unthrottled, after: '', isDue: () => false }
  expect((await spaceFaults(reader, did as Did, whole)).faults).not.toEqual([])
  expect(Math.max(...read)).toBeWithin(value.length, 2 * value.length)
})

test('bytes of a blob that are missing or changed are told, until they are right again', async () => {
  const account = await joined()
  const did = account.did as Did
  const stored = new Stored(pds)
  const bytes = stored.read(account.cid)
  for (const [damaged, word] of [
    [flipped(bytes), 'damaged'],
    [null, 'missing'],
  ] as const) {
    await (damaged === null ? stored.delete(account.cid) : stored.write(account.cid, damaged))
    await pds.runSweep('blob-scrub-full')
    expect((await faultsOfRepo(pds.ctx, did)).join()).toMatch(
      new RegExp(`blob ${account.cid}, to which record com.example.note/image refers, are ${word}`),
    )
  }
  await pds.runSweep('integrity')
  expect((await view()).damaged.some((repo) => repo.did === did)).toBe(true)
  await stored.write(account.cid, bytes)
  await pds.runSweep('blob-scrub-full')
  expect(await faultsOfRepo(pds.ctx, did)).toEqual([])
})

const inRepo = Object.entries(tables).flatMap(([table, columns]) =>
  Object.entries(columns).flatMap(([column, damage]) =>
    typeof damage === 'string' || table === 'repo_seq' ? [] : [[`${table}.${column}`, damage] as const],
  ),
)

test.each(inRepo)('damage of %s is found', async (_, damage) => {
  const account = await joined()
  const did = account.did as Did
  // On PostgreSQL, an event has its number a moment later.
  await until(async () => (await pds.count('unnumbered_event' as Table)) === 0)
  expect(await faultsOfRepo(pds.ctx, did)).toEqual([])
  await damage(account)
  expect(await faultsOfRepo(pds.ctx, did)).not.toEqual([])
})
