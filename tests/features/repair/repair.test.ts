/** Repositories that were damaged on purpose, what a repair makes of them, and what relays think of it. */
import { expect, test } from 'bun:test'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { faultsOfRepo } from '../../../src/features/operations/integrity/repo-check.ts'
import { applyRepair, planRepair, undoRepair, type RepairPlan } from '../../../src/features/operations/repair/repair.ts'
import { blobFolder } from '../../../src/features/data/blobs/open-storage.ts'
import { verifyEverything } from '../../../src/features/operations/backup/backup.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { tidMicros } from '../../../src/protocol/tid.ts'
import { createAccount, type TestAccount } from '../../support/clients/account.ts'
import { Consumer } from '../../support/clients/consumer.ts'
import { allNumbered } from '../../support/clients/events.ts'
import { basic, request } from '../../support/clients/http.ts'
import { ADMIN_TOKEN } from '../../support/servers/config.ts'
import { Uploader } from '../../support/clients/uploader.ts'
import { Stored } from '../../support/stored-blobs.ts'
import { startBucket } from '../../support/servers/bucket-host.ts'
import { startPds } from '../../support/servers/pds.ts'
import { onPostgres } from '../../support/servers/suite.ts'
import { useWorld } from '../../support/world.ts'
import { thrownBy } from '../../support/thrown.ts'

const { pds } = useWorld({ config: { rateLimit: { enabled: false } } })

const COLLECTION = 'com.example.note'
const pathOf = (i: number) => `${COLLECTION}/note${i}`
const RECORDS = 300

type Damaged = TestAccount & { id: number }
const rowOf = async ({ did }: { did: string }) => (await pds.rows('repo', { did }))[0]!

let accounts = 0
async function joined(): Promise<Damaged> {
  const account = await createAccount(pds, `broken${accounts++}`)
  for (const start of [0, 150]) {
    const writes = Array.from({ length: 150 }, (_, i) => ({
      $type: 'com.atproto.repo.applyWrites#create',
      collection: COLLECTION,
      rkey: `note${start + i}`,
      value: { text: `note ${start + i}` },
    }))
    expect((await account.call('com.atproto.repo.applyWrites', { json: { repo: account.did, writes } })).status).toBe(
      200,
    )
  }
  return { ...account, id: (await rowOf(account)).id }
}

const novelOf = ({ id }: Damaged) => ({ repo_id: id, path: `${COLLECTION}/novel` })

/** Writes a large record, which is stored as on SQLite. */
async function withNovel(account: Damaged): Promise<void> {
  await write(account, 'novel', { text: 'x'.repeat(100_000) })
  if (!onPostgres) return
  const [{ value }] = (await pds.rows('record', novelOf(account), ['value'])) as [{ value: Uint8Array }]
  await pds.plant('large_record', { ...novelOf(account), value })
  await pds.damage('record', novelOf(account), { value: new Uint8Array() })
  await pds.damage('repo', { id: account.id }, { has_large: 1 })
}

const write = async (account: TestAccount, rkey: string, record: object = {}) => {
  const json = { repo: account.did, collection: COLLECTION, rkey, record }
  expect((await account.call('com.atproto.repo.putRecord', { json })).status).toBe(200)
}

async function loseEvents({ did }: TestAccount): Promise<void> {
  await allNumbered(pds)
  await pds.lose('repo_seq', { did })
}

const archiveOf = async ({ did }: TestAccount): Promise<Uint8Array> =>
  (await fetch(`${pds.url}/xrpc/com.atproto.sync.getRepo?did=${did}`)).bytes()

async function valuesOf({ did }: TestAccount): Promise<Record<string, string>> {
  const found: Record<string, string> = {}
  for (let cursor = ''; ;) {
    const query = new URLSearchParams({ repo: did, collection: COLLECTION, limit: '100', cursor })
    const { body } = await request(`${pds.url}/xrpc/com.atproto.repo.listRecords?${query}`)
    for (const { uri, cid } of body.records) found[uri.split('/').at(-1)] = cid
    if (body.cursor === undefined) return found
    cursor = body.cursor
  }
}

const refuse: Parameters<typeof applyRepair>[2] = { acceptLoss: false, keepUncertain: null, blobSource: null }

async function planned(account: TestAccount, car?: Uint8Array): Promise<RepairPlan> {
  return planRepair(
    pds.ctx,
    account.did as Did,
    car === undefined
      ? {}
      : {
          car: (async function* () {
            yield car
          })(),
        },
  )
}

async function repaired(account: TestAccount, car?: Uint8Array, choices: Partial<typeof refuse> = {}) {
  const plan = await planned(account, car)
  try {
    return { plan, ...(await applyRepair(pds.ctx, plan, { ...refuse, ...choices })) }
  } finally {
    plan.pool.close()
  }
}

/** What a real relay makes of the repair and of what follows. */
async function acceptedByRelay(account: TestAccount, rev: string, before: number): Promise<void> {
  const consumer = new Consumer(pds.url, { startCursor: before })
  try {
    await write(account, 'afterwards', { text: 'goes on' })
    const events = await consumer.until((all) =>
      all.some((event) => event.event === 'create' && event.rkey === 'afterwards'),
    )
    expect(consumer.faults).toEqual([])
    expect(events.find(({ did, event }) => did === account.did && event === 'sync')).toMatchObject({ rev })
  } finally {
    await consumer.stop()
  }
}

const headSeq = async () => (await pds.rows('repo_seq', {}, ['seq'])).reduce((most, { seq }) => Math.max(most, seq), 0)

const flipped = (bytes: Uint8Array, at = bytes.length - 1): Uint8Array => {
  const changed = Uint8Array.from(bytes)
  changed[at]! ^= 1
  return changed
}

/** Damages that take nothing that is not also elsewhere. */
const harmless: [what: string, damage: (account: Damaged) => Promise<void>][] = [
  [
    'a lost node',
    async ({ id }) => {
      const [node] = await pds.rows('repo_node', { repo_id: id }, ['cid'])
      await pds.lose('repo_node', { repo_id: id, cid: node!.cid })
    },
  ],
  [
    'no node at all',
    async ({ id }) => {
      await pds.lose('repo_node', { repo_id: id })
      await pds.damage('repo', { id }, { fresh: new Uint8Array([0, 0, 0, 0]) })
    },
  ],
  [
    'a bit in a node',
    async ({ id }) => {
      const [node] = await pds.rows('repo_node', { repo_id: id }, ['cid', 'bytes'])
      await pds.damage('repo_node', { repo_id: id, cid: node!.cid }, { bytes: flipped(node!.bytes) })
    },
  ],
  [
    'packed nodes that are cut off',
    async (account) => {
      const { fresh } = await rowOf(account)
      await pds.damage('repo', { id: account.id }, { fresh: fresh.slice(0, fresh.length / 2) })
    },
  ],
  ['a lost record, which the event log has', ({ id }) => pds.lose('record', { repo_id: id, path: pathOf(7) })],
  [
    'a record with other bytes, which the event log has',
    ({ id }) => pds.damage('record', { repo_id: id, path: pathOf(7) }, { value: new Uint8Array([0xa0]) }),
  ],
  [
    'a record under another path',
    ({ id }) => pds.damage('record', { repo_id: id, path: pathOf(7) }, { path: `${COLLECTION}/zzz` }),
  ],
  [
    'a record with another CID',
    async ({ id }) => {
      const [row] = await pds.rows('record', { repo_id: id, path: pathOf(7) }, ['cid'])
      await pds.damage('record', { repo_id: id, path: pathOf(7) }, { cid: flipped(row!.cid) })
    },
  ],
  [
    'a record with another framing',
    ({ id }) => pds.damage('record', { repo_id: id, path: pathOf(7) }, { framing: new Uint8Array([1]) }),
  ],
  [
    'a record of a later revision',
    ({ id }) => pds.damage('record', { repo_id: id, path: pathOf(7) }, { rev: '3zzzzzzzzzzzz' }),
  ],
  [
    'a head with a wrong signature',
    async (account) => {
      const { commit_block } = await rowOf(account)
      await pds.damage('repo', { id: account.id }, { commit_block: flipped(commit_block, commit_block.length - 60) })
    },
  ],
  [
    'a head of another tree',
    async (account) => {
      const { data } = await rowOf(account)
      await pds.damage('repo', { id: account.id }, { data: flipped(data) })
    },
  ],
  ['a lost large value, which the event log has', (account) => pds.lose('large_record', novelOf(account))],
  [
    'a large value with other bytes',
    (account) => pds.damage('large_record', novelOf(account), { value: new Uint8Array(100_000) }),
  ],
  [
    'a large value under another path, and others that no record has',
    async (account) => {
      const where = novelOf(account)
      await pds.damage('large_record', where, { path: `${COLLECTION}/zzz` })
      await pds.plant('large_record', { ...where, path: pathOf(7), value: new Uint8Array(9000) })
    },
  ],
  ['a large record of which the repository does not know', ({ id }) => pds.damage('repo', { id }, { has_large: 0 })],
  ['wrong numbers', ({ id }) => pds.damage('repo', { id }, { record_count: 1, node_count: 1 })],
  ['a lost row of the repository', ({ id }) => pds.lose('repo', { id })],
  [
    'a lost record and a lost node around it',
    async ({ id }) => {
      await pds.lose('repo_node', { repo_id: id })
      await pds.lose('record', { repo_id: id, path: pathOf(7) })
    },
  ],
]

test.each(harmless)('%s: nothing is lost, and a relay accepts the repair', async (_, damage) => {
  const account = await joined()
  await withNovel(account)
  const before = await valuesOf(account)
  await damage(account)
  expect(await faultsOfRepo(pds.ctx, account.did as Did)).not.toEqual([])
  const seq = await headSeq()
  const { plan, rev, faults, evidence } = await repaired(account)
  // Relays refuse revisions of the future.
  expect(tidMicros(rev) / 1000 - pds.clock.now()).toBeLessThan(60_000)
  expect({ losses: plan.losses, uncertain: plan.uncertain, faults }).toEqual({ losses: [], uncertain: [], faults: [] })
  expect(await valuesOf(account)).toEqual(before)
  expect(statSync(evidence).mode & 0o777).toBe(0o600)
  await acceptedByRelay(account, rev, seq)
})

test('everything is verified after all these repairs', async () => {
  const faults: string[] = []
  await verifyEverything(pds.ctx, { onFault: (fault) => faults.push(fault) })
  expect(faults).toEqual([])
})

test('a record that is stored, but not in the tree is added to it', async () => {
  const account = await joined()
  const [row] = await pds.rows('record', { repo_id: account.id, path: pathOf(7) })
  const json = { repo: account.did, collection: COLLECTION, rkey: 'note7' }
  await account.call('com.atproto.repo.deleteRecord', { json })
  await loseEvents(account)
  await pds.plant('record', { ...row! })
  const { plan, faults } = await repaired(account)
  expect([plan.losses, faults]).toEqual([[], []])
  expect(Object.keys(await valuesOf(account))).toHaveLength(RECORDS)
})

test('a record that the log says was deleted does not come back', async () => {
  const account = await joined()
  const [row] = await pds.rows('record', { repo_id: account.id, path: pathOf(7) })
  await account.call('com.atproto.repo.deleteRecord', {
    json: { repo: account.did, collection: COLLECTION, rkey: 'note7' },
  })
  await pds.plant('record', { ...row! })
  const { plan, faults } = await repaired(account)
  expect([plan.losses, faults]).toEqual([[], []])
  expect(plan.steps.join()).toContain('deleted it: it is removed')
  expect(Object.keys(await valuesOf(account))).toHaveLength(RECORDS - 1)
})

test('what is nowhere is named, and lost only if somebody agrees', async () => {
  const account = await joined()
  await loseEvents(account)
  await pds.lose('record', { repo_id: account.id, path: pathOf(7) })
  const before = await rowOf(account)
  const plan = await planned(account)
  plan.pool.close()
  expect(plan.losses).toEqual([`record ${pathOf(7)}`])
  expect(await thrownBy(repaired(account))).toThrow('--accept-loss')
  expect(await rowOf(account)).toEqual(before)
  const { faults } = await repaired(account, undefined, { acceptLoss: true })
  expect(faults).toEqual([])
  expect(Object.keys(await valuesOf(account))).toHaveLength(RECORDS - 1)
})

test('an archive gives back what is nowhere else', async () => {
  const account = await joined()
  const before = await valuesOf(account)
  const car = await archiveOf(account)
  await loseEvents(account)
  await pds.lose('record', { repo_id: account.id })
  await pds.lose('repo_node', { repo_id: account.id })
  const { plan, faults } = await repaired(account, car)
  expect([plan.losses, plan.uncertain, faults]).toEqual([[], [], []])
  expect(await valuesOf(account)).toEqual(before)
})

test('records of an older archive come back or stay away as the operator says, if nobody knows', async () => {
  const account = await joined()
  const car = await archiveOf(account)
  await write(account, 'later')
  await loseEvents(account)
  await pds.lose('repo_node', { repo_id: account.id })
  await pds.damage('repo', { id: account.id }, { fresh: new Uint8Array([0, 0, 0, 0]) })
  await pds.lose('record', { repo_id: account.id, path: pathOf(7) })
  const choices = { acceptLoss: true }
  const plan = await planned(account, car)
  plan.pool.close()
  expect(plan.uncertain).toEqual([pathOf(7)])
  expect(await thrownBy(repaired(account, car, choices))).toThrow('--keep-uncertain')
  const { faults } = await repaired(account, car, { ...choices, keepUncertain: true })
  expect(faults).toEqual([])
  expect(Object.keys(await valuesOf(account))).toHaveLength(RECORDS + 1)
})

test('events that no subscriber could read go, and their records come from their blocks', async () => {
  const account = await joined()
  await write(account, 'last', { text: 'in the log alone' })
  await allNumbered(pds)
  const events = await pds.rows('repo_seq', { did: account.did, event_type: 'commit' }, ['seq', 'frame'])
  const last = events.at(-1)!
  await pds.damage('repo_seq', { seq: last.seq }, { sequenced_at: 1 })
  await pds.lose('record', { repo_id: account.id, path: `${COLLECTION}/last` })
  const seq = await headSeq()
  const { plan, rev, faults } = await repaired(account)
  expect([plan.losses, plan.brokenEvents, faults]).toEqual([[], [last.seq], []])
  expect(Object.keys(await valuesOf(account))).toHaveLength(RECORDS + 1)
  await acceptedByRelay(account, rev, seq)
})

test('the file of a repair brings the rows back, unless the repository was written to since', async () => {
  const account = await joined()
  const where = { repo_id: account.id, path: pathOf(7) }
  await withNovel(account)
  await pds.damage('record', where, { value: new Uint8Array([0xa0]) })
  await pds.damage('large_record', novelOf(account), { value: new Uint8Array(9000) })
  const rowsOfRepo = async (id: number) => ({
    records: (await pds.rows('record', { repo_id: id }))
      .map((row) => ({ ...row, repo_id: 0 }))
      .sort((a, b) => (a.path < b.path ? -1 : 1)),
    large: (await pds.rows('large_record', { repo_id: id })).map(({ path, value }) => ({ path, value })),
    nodes: (await pds.rows('repo_node', { repo_id: id }))
      .map((row) => ({ ...row, repo_id: 0 }))
      .sort((a, b) => Buffer.compare(a.cid, b.cid)),
    references: await pds.rows('blob_reference', { did: account.did }),
  })
  const before = await rowsOfRepo(account.id)
  const { evidence } = await repaired(account)
  const { rev, faults } = await undoRepair(pds.ctx, evidence)
  expect(faults.join()).toContain('note7 does not match its CID')
  const present = await rowOf(account)
  expect(await rowsOfRepo(present.id)).toEqual(before)
  const seq = await headSeq()
  const second = await repaired(account)
  expect(second.rev > rev).toBe(true)
  await acceptedByRelay(account, second.rev, seq)
  expect(await thrownBy(undoRepair(pds.ctx, second.evidence))).toThrow('written to since')
  writeFileSync(`${evidence}.other`, readFileSync(import.meta.path))
  expect(await thrownBy(undoRepair(pds.ctx, `${evidence}.other`))).toThrow('is not a file that a repair has kept')
})

test('what moderators have done since a repair is not undone with it', async () => {
  const account = await joined()
  const image = await Uploader.at(pds, account.did as Did, account.accessJwt).upload(
    'a picture that is taken down',
    'image/png',
  )
  await write(account, 'image', { image })
  const { uri, cid } = (
    await request(`${pds.url}/xrpc/com.atproto.repo.getRecord?repo=${account.did}&collection=${COLLECTION}&rkey=note3`)
  ).body
  const record = (rkey: string) => ({
    $type: 'com.atproto.repo.strongRef',
    uri: uri.replace('note3', rkey),
    cid,
  })
  const blob = { $type: 'com.atproto.admin.defs#repoBlobRef', did: account.did, cid: image.ref.$link }
  const decide = async (subject: object, applied: boolean) =>
    expect(
      await request(`${pds.url}/xrpc/com.atproto.admin.updateSubjectStatus`, {
        json: { subject, takedown: { applied, ...(applied && { ref: 'case' }) } },
        headers: basic('admin', ADMIN_TOKEN),
      }),
    ).toMatchObject({ status: 200 })
  await decide(record('note4'), true)
  await pds.lose('record', { repo_id: account.id, path: pathOf(7) })
  const { evidence } = await repaired(account)

  await decide(record('note3'), true)
  await decide(record('note4'), false)
  await decide(blob, true)
  await undoRepair(pds.ctx, evidence)
  const served = async (path: string) => (await request(`${pds.url}/xrpc/${path}`)).status
  const recordStatus = (rkey: string) =>
    served(`com.atproto.repo.getRecord?repo=${account.did}&collection=${COLLECTION}&rkey=${rkey}`)
  expect(await recordStatus('note3')).toBe(400)
  expect(await recordStatus('note4')).toBe(200)
  expect(await served(`com.atproto.sync.getBlob?did=${account.did}&cid=${blob.cid}`)).toBe(400)
})

test('a repository that is written to while a repair is planned is not replaced', async () => {
  const account = await joined()
  await pds.lose('record', { repo_id: account.id, path: pathOf(7) })
  const plan = await planned(account)
  await write(account, 'meanwhile')
  expect(await thrownBy(applyRepair(pds.ctx, plan, refuse))).toThrow('written to during the repair')
  plan.pool.close()
  const { faults } = await repaired(account)
  expect(faults).toEqual([])
  expect(Object.keys(await valuesOf(account))).toHaveLength(RECORDS + 1)
})

test('takedowns outlive a repair, and an inactive account gets no event', async () => {
  const account = await joined()
  await pds.damage('record', { repo_id: account.id, path: pathOf(3) }, { takedown_ref: 'case' })
  await pds.lose('record', { repo_id: account.id, path: pathOf(7) })
  await account.call('com.atproto.server.deactivateAccount', { json: {} })
  await allNumbered(pds)
  const seq = await headSeq()
  await repaired(account)
  expect(await headSeq()).toBe(seq)
  const { id } = await rowOf(account)
  expect((await pds.rows('record', { repo_id: id, path: pathOf(3) }))[0]!.takedown_ref).toBe('case')
})

test('rows of blobs come back from the bytes, and references from the records', async () => {
  const account = await joined()
  const image = await Uploader.at(pds, account.did as Did, account.accessJwt).upload('an image', 'image/png')
  const cid = image.ref.$link
  await write(account, 'image', { image })
  await pds.lose('blob', { did: account.did, cid })
  await pds.lose('blob_reference', { did: account.did, cid })
  const { blobs, faults } = await repaired(account)
  expect(faults).toEqual([])
  expect(blobs).toMatchObject({ rows: 1, lost: [] })
  expect(new Stored(pds).read(cid)).toHaveLength(8)
  new Stored(pds).delete(cid)
  expect((await repaired(account)).blobs.lost).toEqual([cid])
})

test('bytes of a blob come back from the mirror, which is asked only for what is wrong', async () => {
  await using bucket = await startBucket()
  await using mirrored = await startPds({ blobMirror: bucket.mirror, blobs: { store: 'folder' } })
  const account = await createAccount(mirrored, 'mirrored')
  const did = account.did as Did
  const uploader = Uploader.at(mirrored, did, account.accessJwt)
  const cids: string[] = []
  for (const text of ['lost', 'changed', 'whole']) {
    const image = await uploader.upload(`an image that is ${text}`, 'image/png')
    const json = { repo: did, collection: COLLECTION, rkey: text, record: { image } }
    expect((await account.call('com.atproto.repo.putRecord', { json })).status).toBe(200)
    cids.push(image.ref.$link)
  }
  await mirrored.runSweep('blob-mirror')
  const [lost, changed, whole] = cids as [string, string, string]
  const folder = blobFolder(mirrored.ctx)
  await folder.remove(lost)
  writeFileSync(folder.pathOf(changed), 'an image that is CHANGED')
  const plan = await planRepair(mirrored.ctx, did, {})
  const before = bucket.requests.length
  try {
    const { blobs, faults } = await applyRepair(mirrored.ctx, plan, refuse)
    expect({ faults, lost: blobs.lost }).toEqual({ faults: [], lost: [] })
  } finally {
    plan.pool.close()
  }
  expect(bucket.requests.slice(before).some((each) => each.includes(whole))).toBe(false)
  expect((await verifyEverything(mirrored.ctx, { onFault: (fault) => expect(fault).toBe('') })).faults).toBe(0)
})
