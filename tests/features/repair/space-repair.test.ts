/** Repositories in spaces that were damaged on purpose, in every table, and what a repair makes of them. */
import { expect, setDefaultTimeout, test } from 'bun:test'
import { statSync } from 'node:fs'
import { faultsOfRepo } from '../../../src/features/operations/integrity/repo-check.ts'
import {
  applySpaceRepair,
  planRepair,
  planSpaceRepair,
  undoRepair,
  type RepairedSpaces,
  type SpaceRepairPlan,
} from '../../../src/features/operations/repair/repair.ts'
import { jsonToData } from '../../../src/protocol/data-model.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { parseSpaceCommit } from '../../../src/protocol/space-commit.ts'
import { createAccount, type TestAccount } from '../../support/clients/account.ts'
import { bearer } from '../../support/clients/http.ts'
import { hashOfSet } from '../../support/space-oracle.ts'
import type { Table } from '../../support/tables.ts'
import { archiveIn } from '../../support/zip-reading.ts'
import { useWorld } from '../../support/world.ts'
import { thrownBy } from '../../support/thrown.ts'

// Each damage has an account of its own, which is repaired twice.
setDefaultTimeout(60_000)

const NOTE = 'test.forum.note'
const RECORDS = 60
const { pds } = useWorld({ config: { spaces: { enabled: true }, rateLimit: { enabled: false } } })

const tables = ['space_repo', 'space_place', 'space_record', 'space_op', 'space_blob_reference'] as const

interface Member {
  account: TestAccount
  did: Did
  place: { space: string; repo: string }
  id: number
  cid: string
}
const call = ({ account }: Pick<Member, 'account'>, method: string, json: object) =>
  account.call(`com.atproto.space.${method}`, { json })
const pathOf = (name: string) => `${NOTE}/${name}`

let members = 0
/** An account that has written, replaced and deleted in a space, with a file. In development, a session may. */
async function member(): Promise<Member> {
  const account = await createAccount(pds, `member${members++}`)
  const place = { space: `at://${account.did}/space/test.forum.space/hidden`, repo: account.did }
  const { body } = await account.call('com.atproto.repo.uploadBlob', {
    method: 'POST',
    headers: { 'content-type': 'text/plain' },
    body: Buffer.from(`file of ${account.did}`),
  })
  const writes = Array.from({ length: RECORDS }, (_, i) => ({
    $type: 'com.atproto.space.applyWrites#create',
    collection: NOTE,
    rkey: `note${i}`,
    value: i === 7 ? { file: body.blob } : { text: `note ${i}` },
  }))
  const at = (rkey: string) => ({ ...place, collection: NOTE, rkey })
  for (const [method, json] of [
    ['applyWrites', { ...place, writes }],
    ['putRecord', { ...at('note1'), record: { text: 'replaced' } }],
    ['createRecord', { ...at('late'), record: { text: 'late' } }],
    ['deleteRecord', at('note2')],
  ] as const)
    expect([method, (await call({ account }, method, json)).status]).toEqual([method, 200])
  const [{ id }] = (await pds.rows('space_repo', { did: account.did }, ['id'])) as [{ id: number }]
  return { account, did: account.did as Did, place, id, cid: body.blob.ref.$link }
}

/** All that the member reads, and whether the hash is that of it. */
async function contentOf({ account, place }: Member) {
  const get = async (method: string, params: object = {}) => {
    const query = new URLSearchParams({ ...place, limit: '1000', ...params })
    const { status, body } = await account.call(`com.atproto.space.${method}?${query}`)
    expect([method, status]).toEqual([method, 200])
    return body
  }
  const { records } = await get('listRecords')
  const commit = parseSpaceCommit(jsonToData((await get('listRepoOps')).commit))
  const elements = records.map((one: Record<string, string>) => `${one['collection']}/${one['rkey']}/${one['cid']}`)
  expect(Buffer.from(commit.hash).toString('hex')).toBe(hashOfSet(elements))
  return { rev: commit.rev as string, content: { records, blobs: (await get('listBlobs')).cids } }
}

/** What the tables have of a member, without revisions of the repository. */
async function rowsOf({ did, id }: Member): Promise<Record<string, unknown[]>> {
  const found: Record<string, unknown[]> = {}
  for (const table of tables) {
    const rows = (await pds.rows(table as Table)) as Record<string, unknown>[]
    const own = rows.filter((row) => row['did'] === did || row['space_repo_id'] === id || row['id'] === id)
    found[table] = own
      .map((row) => (table === 'space_repo' ? { ...row, rev: '' } : row))
      .map((row) => JSON.stringify(row, (_, value) => (value?.type === 'Buffer' ? value.data : value)))
      .toSorted()
  }
  return found
}

const choices = { acceptLoss: false, keepUncertain: null, blobSource: null }

async function planned(
  { did }: Member,
  car?: Uint8Array,
  keepUncertain = false,
): Promise<SpaceRepairPlan & Disposable> {
  const sources = car === undefined ? {} : { car: oneChunk(car) }
  const { pool, archiveRoots } = await planRepair(pds.ctx, did, sources)
  const plan = await planSpaceRepair(pds.ctx, did, { pool, archiveRoots, backup: null }, keepUncertain)
  return { ...plan, [Symbol.dispose]: () => pool.close() }
}

async function* oneChunk(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}

async function repaired(
  one: Member,
  {
    car,
    ...more
  }: Partial<typeof choices | { acceptLoss: boolean; keepUncertain: boolean }> & { car?: Uint8Array } = {},
): Promise<RepairedSpaces & { plan: SpaceRepairPlan }> {
  const chosen = { ...choices, ...more }
  using plan = await planned(one, car, chosen.keepUncertain === true)
  return { plan, ...(await applySpaceRepair(pds.ctx, plan, chosen)) }
}

const faultsIn = ({ did }: Member) => faultsOfRepo(pds.ctx, did)

const flipped = (bytes: Uint8Array): Uint8Array => {
  const changed = Uint8Array.from(bytes)
  changed[changed.length - 1]! ^= 1
  return changed
}
const record = ({ id }: Member, name: string) => ({ space_repo_id: id, path: pathOf(name) })
const opsOf = async ({ id }: Member) =>
  (await pds.rows('space_op', { space_repo_id: id })).toSorted((a, b) =>
    a.rev === b.rev ? a.idx - b.idx : a.rev < b.rev ? -1 : 1,
  )
const reference = ({ did, cid }: Member) => ({ did, cid })

/** Damages that take nothing that does not follow from other rows. */
const harmless: [what: string, damage: (member: Member) => Promise<void>][] = [
  ['the lost row of a repository', ({ id }) => pds.lose('space_repo', { id })],
  ['a wrong number of records', ({ id }) => pds.damage('space_repo', { id }, { record_count: 7 })],
  ['a state of zeros', ({ id }) => pds.damage('space_repo', { id }, { state: new Uint8Array(2048) })],
  ['a state that is cut off', ({ id }) => pds.damage('space_repo', { id }, { state: new Uint8Array(10) })],
  ['a revision that is none', ({ id }) => pds.damage('space_repo', { id }, { rev: 'nonsense' })],
  ['an older revision', ({ id }) => pds.damage('space_repo', { id }, { rev: '3aaaaaaaaaaa2' })],
  ['a revision of the future', ({ id }) => pds.damage('space_repo', { id }, { rev: '7zzzzzzzzzzzz' })],
  ['another authority', ({ id }) => pds.damage('space_repo', { id }, { authority: 'did:web:x.test' })],
  ['another type', ({ id }) => pds.damage('space_repo', { id }, { type: 'test.forum.other' })],
  [
    'a row of nobody who is here',
    ({ id }) => pds.damage('space_repo', { id }, { did: 'did:plc:aaaaaaaaaaaaaaaaaaaaaaaa' }),
  ],
  [
    'a row of another type of spaces',
    ({ id, did }) => pds.damage('space_repo', { id }, { space: `at://${did}/space/test.forum.spade/hidden` }),
  ],
  ['a row whose space is none', ({ id }) => pds.damage('space_repo', { id }, { space: 'nonsense' })],
  ['a lost place', ({ id }) => pds.lose('space_place', { id })],
  ['a place of another number', ({ id }) => pds.damage('space_place', { id }, { id: 1_000_000 + id })],
  ['a place of nobody who is here', ({ id }) => pds.damage('space_place', { id }, { did: 'did:web:gone.test' })],
  ['a place in no space', ({ id }) => pds.damage('space_place', { id }, { space: 'nonsense' })],
  ['a record under another key', (one) => pds.damage('space_record', record(one, 'note3'), { path: pathOf('zzz') })],
  ['a record under what is no path', (one) => pds.damage('space_record', record(one, 'note3'), { path: '~' })],
  [
    'a record with another CID',
    async (one) => {
      const [{ cid }] = (await pds.rows('space_record', record(one, 'note3'))) as [{ cid: Uint8Array }]
      await pds.damage('space_record', record(one, 'note3'), { cid: flipped(cid) })
    },
  ],
  [
    'a record with a CID that is none',
    (one) => pds.damage('space_record', record(one, 'note3'), { cid: new Uint8Array(3) }),
  ],
  ['a record of another revision', (one) => pds.damage('space_record', record(one, 'note3'), { rev: '7zzzzzzzzzzzz' })],
  ['a record of an older revision', (one) => pds.damage('space_record', record(one, 'late'), { rev: '3aaaaaaaaaaa2' })],
  [
    'a deleted record that is there again',
    async ({ id }) => {
      const [row] = await pds.rows('space_record', { space_repo_id: id })
      await pds.plant('space_record', { ...row!, path: pathOf('note2') })
    },
  ],
  [
    'no change at all but the last',
    async (one) => {
      for (const { rev, idx } of (await opsOf(one)).slice(0, -1))
        await pds.lose('space_op', { space_repo_id: one.id, rev, idx })
      // The oldest changes are deleted in time; these were not due, and what they led to is there.
      await pds.damage('space_op', { space_repo_id: one.id }, { idx: 3 })
      await pds.damage('space_repo', { id: one.id }, { record_count: 1 })
    },
  ],
  ...(
    [
      ['the first change', 0],
      ['a change in the middle of a revision', 20],
      ['the last change of a revision', RECORDS - 1],
      ['the only change of a revision', RECORDS],
      ['a deletion', RECORDS + 2],
    ] as const
  ).map(([what, at]): [string, (one: Member) => Promise<void>] => [
    `${what} that is lost`,
    async (one) => {
      const { rev, idx } = (await opsOf(one))[at]!
      await pds.lose('space_op', { space_repo_id: one.id, rev, idx })
    },
  ]),
  ...(
    [
      ['another CID', (op) => ({ cid: flipped(op.cid!) })],
      ['no CID', () => ({ cid: null })],
      ['another path', () => ({ path: pathOf('zzz') })],
      ['another number', () => ({ idx: 77 })],
      ['another revision', () => ({ rev: '3aaaaaaaaaaa2' })],
      ['another revision before it', () => ({ prev_rev: '3aaaaaaaaaaa2' })],
    ] as [string, (op: Awaited<ReturnType<typeof opsOf>>[number]) => object][]
  ).map(([what, changes]): [string, (one: Member) => Promise<void>] => [
    `a change with ${what}`,
    async (one) => {
      const op = (await opsOf(one))[RECORDS + 1]!
      await pds.damage('space_op', { space_repo_id: one.id, rev: op.rev, idx: op.idx }, changes(op))
    },
  ]),
  [
    'a change that replaces something else',
    async (one) => {
      const op = (await opsOf(one))[RECORDS]!
      await pds.damage('space_op', { space_repo_id: one.id, rev: op.rev, idx: op.idx }, { prev: flipped(op.prev!) })
    },
  ],
  ['a lost reference', (one) => pds.lose('space_blob_reference', reference(one))],
  [
    'a reference of another record',
    (one) => pds.damage('space_blob_reference', reference(one), { record: pathOf('note8') }),
  ],
  [
    'a reference of a record that is none',
    (one) => pds.damage('space_blob_reference', reference(one), { record: 'none' }),
  ],
  ['a reference in another space', (one) => pds.damage('space_blob_reference', reference(one), { space: 'nonsense' })],
  ['a reference to another blob', (one) => pds.damage('space_blob_reference', reference(one), { cid: 'bafkreinone' })],
  [
    'a reference of another account',
    (one) => pds.damage('space_blob_reference', reference(one), { did: 'did:web:x.test' }),
  ],
  [
    'a reference of another revision',
    (one) => pds.damage('space_blob_reference', reference(one), { rev: '7zzzzzzzzzzzz' }),
  ],
  ['a lost row of a blob', (one) => pds.lose('blob', reference(one))],
]

test.each(harmless)('%s: it is found, nothing is lost, and a repair can be undone', async (_, damage) => {
  const one = await member()
  const before = await contentOf(one)
  expect(await faultsIn(one)).toEqual([])
  await damage(one)
  const damaged = await rowsOf(one)
  const found = await faultsIn(one)
  expect(found).not.toEqual([])
  for (const word of ['hidden', 'forum', 'note', one.cid])
    expect(found.join('; ').replaceAll('noted', '')).not.toContain(word)

  const first = await repaired(one)
  const { losses, uncertain, undecided } = first.plan
  expect({ losses, uncertain, undecided, faults: first.faults, lost: first.blobs.lost }).toEqual({
    losses: [],
    uncertain: [],
    undecided: [],
    faults: [],
    lost: [],
  })
  const after = await contentOf(one)
  expect(after.content).toEqual(before.content)
  expect(after.rev >= before.rev).toBe(true)
  if (first.evidence !== null) {
    expect(statSync(first.evidence).mode & 0o777).toBe(0o600)
    await undoRepair(pds.ctx, first.evidence)
    expect(await rowsOf(one)).toEqual(damaged)
    const second = await repaired(one)
    expect([second.plan.losses, second.faults]).toEqual([[], []])
    expect((await contentOf(one)).content).toEqual(before.content)
  }
  // Life goes on, and what is read of the changes leads to the hash.
  expect((await call(one, 'createRecord', { ...one.place, collection: NOTE, rkey: 'new', record: {} })).status).toBe(
    200,
  )
  expect((await contentOf(one)).rev > after.rev).toBe(true)
  expect(await faultsIn(one)).toEqual([])
})

test('what is nowhere is named, and lost only if somebody agrees', async () => {
  const one = await member()
  await pds.lose('space_record', record(one, 'note3'))
  await pds.damage('space_record', record(one, 'note4'), { value: new Uint8Array([0xa0]) })
  await pds.damage('space_record', record(one, 'note5'), { value: new Uint8Array([0xff]) })
  const before = await rowsOf(one)
  using plan = await planned(one)
  expect(plan.losses.map((loss) => loss.replace(/ as \w+/, ' as CID').split(' in a space: ')[1])).toEqual([
    `record ${pathOf('note4')} as CID: another version of it is left, and takes its place`,
    `record ${pathOf('note5')}`,
    `record ${pathOf('note3')}`,
  ])
  expect(await thrownBy(repaired(one))).toThrow('--accept-loss')
  expect(await rowsOf(one)).toEqual(before)
  const { faults } = await repaired(one, { acceptLoss: true })
  expect(faults).toEqual([])
  const { content } = await contentOf(one)
  expect(content.records).toHaveLength(RECORDS - 2)
})

test('records beyond the latest changes, of which nothing is left, are counted', async () => {
  const one = await member()
  await pds.lose('space_op', { space_repo_id: one.id })
  await pds.lose('space_record', record(one, 'note3'))
  using plan = await planned(one)
  expect(plan.losses).toEqual([`repository ${one.id} in a space: 1 records of which nothing is left`])
})

test('an archive of the account gives back what is nowhere else', async () => {
  const one = await member()
  const before = await contentOf(one)
  const answer = await fetch(`${pds.url}/v1/account/archive`, { headers: bearer(one.account.accessJwt) })
  const files = await archiveIn(await answer.bytes()).contents()
  const car = new Uint8Array(files.get('spaces/1.car')!)
  await pds.lose('space_op', { space_repo_id: one.id })
  for (const name of ['note3', 'note7']) await pds.lose('space_record', record(one, name))
  await pds.lose('space_blob_reference', reference(one))
  expect((await repaired(one, { car })).faults).toEqual([])
  expect((await contentOf(one)).content).toEqual(before.content)
  // An archive of another account says nothing of this one.
  const other = await member()
  await pds.lose('space_op', { space_repo_id: other.id })
  await pds.lose('space_record', record(other, 'note3'))
  using plan = await planned(other, car)
  expect([plan.losses.length, plan.uncertain]).toEqual([1, []])
})

test('records of an older archive come back or stay away as the operator says, if nobody knows', async () => {
  const one = await member()
  const answer = await fetch(`${pds.url}/v1/account/archive`, { headers: bearer(one.account.accessJwt) })
  const car = new Uint8Array((await archiveIn(await answer.bytes()).contents()).get('spaces/1.car')!)
  const gone = { ...one.place, collection: NOTE, rkey: 'note9' }
  expect((await call(one, 'deleteRecord', gone)).status).toBe(200)
  await pds.lose('space_op', { space_repo_id: one.id })
  await pds.damage('space_repo', { id: one.id }, { state: new Uint8Array(2048) })
  using plan = await planned(one, car)
  expect(plan.uncertain).toEqual([`${one.id} ${pathOf('note9')}`])
  expect(await thrownBy(repaired(one, { car }))).toThrow('--keep-uncertain')
  const { faults } = await repaired(one, { car, keepUncertain: false })
  expect(faults).toEqual([])
  expect((await contentOf(one)).content.records).toHaveLength(RECORDS - 1)
})

test('two rows that disagree where a repository belongs are left alone', async () => {
  const one = await member()
  await pds.damage('space_place', { id: one.id }, { space: one.place.space.replace('hidden', 'other') })
  const before = await rowsOf(one)
  const { faults, plan, evidence } = await repaired(one)
  expect([plan.undecided.length > 0, faults.length > 0, evidence]).toEqual([true, true, null])
  expect(await rowsOf(one)).toEqual(before)
})

test('a repository that is written to meanwhile is neither replaced nor brought back', async () => {
  const one = await member()
  await pds.damage('space_repo', { id: one.id }, { record_count: 7 })
  const write = () => call(one, 'createRecord', { ...one.place, collection: NOTE, record: {} })
  {
    using plan = await planned(one)
    expect((await write()).status).toBe(200)
    expect(await thrownBy(applySpaceRepair(pds.ctx, plan, choices))).toThrow('written to during the repair')
  }
  const { evidence, faults } = await repaired(one)
  expect(faults).toEqual([])
  expect((await write()).status).toBe(200)
  expect(await thrownBy(undoRepair(pds.ctx, evidence!))).toThrow('written to since the repair')
  expect(await faultsIn(one)).toEqual([])
})

test('a lost reference costs no blob, also before anybody has noticed', async () => {
  const one = await member()
  const { content } = await contentOf(one)
  await pds.lose('space_blob_reference', reference(one))
  await pds.age('blob')
  await pds.runSweep('blob-gc')
  expect(await pds.count('blob', reference(one))).toBe(1)
  await repaired(one)
  await pds.runSweep('blob-gc')
  expect((await contentOf(one)).content).toEqual(content)
})

test('the number of a lost repository is not given to another', async () => {
  const one = await member()
  await pds.lose('space_repo', { id: one.id })
  const other = await member()
  expect(other.id).toBeGreaterThan(one.id)
  expect([await faultsIn(other), (await repaired(one)).faults]).toEqual([[], []])
})
