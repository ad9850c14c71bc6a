/** Damage of repositories that is found while the server runs. */
import { expect, test } from 'bun:test'
import { blobHealth } from '../../../src/features/data/blobs/blobs.ts'
import { newestCommitEvent, writtenSince } from '../../../src/features/data/firehose/firehose.ts'
import { faultsOfRepo } from '../../../src/features/operations/integrity/repo-check.ts'
import type { Reader, Sql } from '../../../src/platform/database/database.ts'
import { cidOfBlob } from '../../../src/protocol/cid.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { signingKey } from '../../../src/protocol/keys.ts'
import { nextTid } from '../../../src/protocol/tid.ts'
import { archiveOf } from '../../support/archive.ts'
import { createAccount, type TestAccount } from '../../support/clients/account.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { Uploader } from '../../support/clients/uploader.ts'
import { ADMIN_TOKEN } from '../../support/servers/pds.ts'
import { until } from '../../support/until.ts'
import { useWorld } from '../../support/world.ts'

const ROUND_SECS = 3600

const { pds } = useWorld({
  config: {
    integrity: { roundSecs: ROUND_SECS, cpuPercent: 100 },
    alerts: { mailTo: ['operator@example.org'], diskFreeBytes: 0 },
  },
})

const rowOf = async ({ did }: { did: string }) => (await pds.rows('repo', { did }))[0]!

let accounts = 0
/** An account with so many records. */
async function joined(records: number): Promise<TestAccount & { id: number }> {
  const account = await createAccount(pds, `whole${accounts++}`)
  const writes = Array.from({ length: records }, (_, i) => ({
    $type: 'com.atproto.repo.applyWrites#create',
    collection: 'com.example.note',
    rkey: `note${i}`,
    value: { text: `note ${i}` },
  }))
  for (let at = 0; at < records; at += 200) {
    const json = { repo: account.did, writes: writes.slice(at, at + 200) }
    expect((await account.call('com.atproto.repo.applyWrites', { json })).status).toBe(200)
  }
  return { ...account, id: (await rowOf(account)).id }
}

interface View {
  round: { repos: number; endedAt: string | null; completedRepos: number | null }
  count: number
  damaged: { did: string; faults: string[] }[]
}
const view = async () => (await request(`${pds.url}/v1/admin/integrity`, { headers: bearer(ADMIN_TOKEN) })).body as View

/** All passes of the next round. Returns what is known to be wrong with the account. */
async function faultsAfterRound({ did }: TestAccount): Promise<string[]> {
  pds.clock.advance({ secs: ROUND_SECS })
  do await pds.runSweep('integrity')
  while ((await view()).round.endedAt === null)
  return (await view()).damaged.find((repo) => repo.did === did)?.faults ?? []
}

test('what is whole has no findings, whatever was written and deleted', async () => {
  const account = await joined(300)
  const json = { repo: account.did, collection: 'com.example.note', rkey: 'note7' }
  expect((await account.call('com.atproto.repo.deleteRecord', { json })).status).toBe(200)
  await withBlob(account)
  const empty = await joined(0)
  expect([await faultsAfterRound(account), await faultsAfterRound(empty)]).toEqual([[], []])
  expect(await view()).toMatchObject({ count: 0, round: { completedRepos: accounts } })
})

/** A record of the account that refers to a new blob. */
async function withBlob(account: TestAccount, rkey = 'image'): Promise<{ did: string; record: string; cid: string }> {
  const { did, accessJwt } = account
  const image = await Uploader.at(pds, did as Did, accessJwt).upload(`image of ${did}`, 'image/png')
  const json = { repo: did, collection: 'com.example.note', rkey, record: { image } }
  expect((await account.call('com.atproto.repo.createRecord', { json })).status).toBe(200)
  return { did, record: `com.example.note/${rkey}`, cid: image.ref.$link }
}

const damages: [what: string, damage: (account: TestAccount & { id: number }) => Promise<void>, found: RegExp][] = [
  [
    'a record that is lost',
    ({ id }) => pds.lose('record', { repo_id: id, path: 'com.example.note/note7' }),
    /note7 is missing/,
  ],
  [
    'a record with other bytes',
    ({ id }) =>
      pds.damage('record', { repo_id: id, path: 'com.example.note/note7' }, { value: new Uint8Array([0xa0]) }),
    /note7 does not match its CID/,
  ],
  [
    'a record that the tree does not have',
    ({ id }) => pds.damage('record', { repo_id: id, path: 'com.example.note/note7' }, { path: 'com.example.note/zzz' }),
    /note7 is missing/,
  ],
  [
    'a node with other bytes',
    async ({ id }) => {
      const [one, other] = await pds.rows('repo_node', { repo_id: id }, ['cid', 'bytes'])
      await pds.damage('repo_node', { repo_id: id, cid: one!.cid }, { bytes: other!.bytes })
    },
    /does not match its CID|cannot be read/,
  ],
  [
    'a lost branch',
    async ({ id }) => {
      const [node] = await pds.rows('repo_node', { repo_id: id }, ['cid'])
      await pds.lose('repo_node', { repo_id: id, cid: node!.cid })
    },
    /the tree cannot be read/,
  ],
  [
    'a commit with a flipped bit',
    async (account) => {
      const changed = Uint8Array.from((await rowOf(account)).commit_block)
      changed[changed.length - 1]! ^= 1
      await pds.damage('repo', { id: account.id }, { commit_block: changed })
    },
    /the commit /,
  ],
  [
    'a wrong number of records',
    ({ id }) => pds.damage('repo', { id }, { record_count: 299 }),
    /299 records are counted, but 300 are in the tree/,
  ],
  [
    'a wrong number of nodes',
    ({ id }) => pds.damage('repo', { id }, { node_count: 1 }),
    /1 nodes are counted, but \d+ are in the tree/,
  ],
  [
    'a repository that is behind its events',
    async (account) => {
      const { head, commit_block, rev } = await rowOf(account)
      await account.call('com.atproto.repo.createRecord', {
        json: { repo: account.did, collection: 'com.example.note', rkey: 'later', record: {} },
      })
      await pds.lose('record', { repo_id: account.id, path: 'com.example.note/later' })
      await pds.damage('repo', { id: account.id }, { rev, head, commit_block })
    },
    /the event log has revision/,
  ],
  [
    'a lost reference to a blob',
    async (account) => {
      const { did, record, cid } = await withBlob(account)
      await pds.lose('blob_reference', { did, record, cid })
    },
    /blob references of record com.example.note\/image/,
  ],
  [
    'a reference of another record than the one that has the blob',
    async (account) => {
      const { did, record, cid } = await withBlob(account)
      await pds.damage('blob_reference', { did, record, cid }, { record: 'com.example.note/note7' })
    },
    /blob references of record com.example.note\/note7/,
  ],
  [
    'a blob that is due for deletion though a record refers to it',
    async (account) => {
      const { did, cid } = await withBlob(account)
      await pds.damage('blob', { did, cid }, { unreferenced_at: pds.clock.now() })
    },
    /whether blob \w+ is due for deletion/,
  ],
]

test.each(damages)('%s is found, and told', async (_, damage, found) => {
  const account = await joined(300)
  expect(await faultsAfterRound(account)).toEqual([])
  pds.mails.length = 0
  await damage(account)
  expect((await faultsAfterRound(account)).join()).toMatch(found)
  // Of two nodes, the other may be making a pass of alerts, which began before.
  await until(async () => {
    await pds.runSweep('alerts')
    await pds.runSteps()
    return pds.mails.some(({ text }) => text.includes(`a repository is damaged (${account.handle})`))
  })
  // A deleted account has no findings.
  await account.call('com.atproto.server.deactivateAccount', { json: {} })
  await request(`${pds.url}/xrpc/com.atproto.admin.deleteAccount`, {
    headers: bearer(ADMIN_TOKEN),
    json: { did: account.did },
  })
  expect((await view()).damaged.filter(({ did }) => did === account.did)).toEqual([])
})

test('a repository that was written to is checked in the next pass, long before its turn', async () => {
  const [quiet, written] = [await joined(3), await joined(3)]
  await faultsAfterRound(quiet)
  await pds.lose('record', { repo_id: written.id, path: 'com.example.note/note1' })
  await pds.lose('record', { repo_id: quiet.id, path: 'com.example.note/note1' })
  await written.call('com.atproto.repo.createRecord', {
    json: { repo: written.did, collection: 'com.example.note', record: {} },
  })
  // On PostgreSQL, an event has its number a moment later.
  await until(async () => (await pds.runSweep('integrity')) && (await view()).count > 0)
  expect((await view()).damaged.map(({ did }) => did)).toEqual([written.did])
})

/** An account with a finding, whose repository is right again since. */
async function mended(): Promise<TestAccount> {
  const account = await joined(3)
  const where = { repo_id: account.id, path: 'com.example.note/note1' }
  const [{ value }] = (await pds.rows('record', where, ['value'])) as [{ value: Uint8Array }]
  await pds.damage('record', where, { value: new Uint8Array([0xa0]) })
  expect(await faultsAfterRound(account)).not.toEqual([])
  await pds.damage('record', where, { value })
  return account
}

test('a finding goes once the repository is right again', async () => {
  expect(await faultsAfterRound(await mended())).toEqual([])
})

test('a finding goes within the hour once the repository is right again, though it is not its turn', async () => {
  const { did } = await mended()
  pds.clock.advance({ secs: ROUND_SECS / 2 })
  await pds.runSweep('integrity')
  expect((await view()).damaged.filter((repo) => repo.did === did)).toEqual([])
})

test('an account that was deleted is not said to be damaged', async () => {
  const account = await joined(3)
  await pds.runSweep('integrity')
  await request(`${pds.url}/xrpc/com.atproto.admin.deleteAccount`, {
    headers: bearer(ADMIN_TOKEN),
    json: { did: account.did },
  })
  await pds.runSweep('integrity')
  expect(pds.log.filter(({ did, message }) => did === account.did && message.includes('damaged'))).toEqual([])
})

test('all of a check is done in small pieces, so that a large repository holds up no request', async () => {
  const { did } = await joined(1200)
  const { counters } = pds.ctx.db
  const outside: number[] = []
  for (let attempt = 0; attempt < 3; attempt++) {
    let inside = 0
    const before = counters.statements
    const faults = await faultsOfRepo(pds.ctx, did as Did, async (work) => {
      const start = { ...counters }
      const result = await work()
      expect(counters.rows - start.rows).toBeLessThanOrEqual(600)
      inside += counters.statements - start.statements
      return result
    })
    expect(faults).toEqual([])
    outside.push(counters.statements - before - inside)
  }
  expect(Math.min(...outside)).toBeLessThanOrEqual(2)
})

test('large records, which may refer to thousands of blobs, are compared one by one', async () => {
  const { did, accessJwt } = await joined(0)
  const image = (name: string) => ({ cid: cidOfBlob(Buffer.from(name)).toString(), mimeType: 'image/png' })
  const records = Array.from({ length: 10 }, (_, i) => [
    `com.example.note/${i}`,
    { $type: 'com.example.note', images: Array.from({ length: 300 }, (__, j) => image(`${i} ${j}`)) },
  ])
  const key = signingKey('p256', new Uint8Array(32).fill(3))
  const { bytes } = archiveOf(did, nextTid(null, pds.clock.now() * 1000, 1), Object.fromEntries(records), key)
  const imported = await request(`${pds.url}/xrpc/com.atproto.repo.importRepo`, {
    method: 'POST',
    body: bytes as Uint8Array<ArrayBuffer>,
    headers: { ...bearer(accessJwt), 'content-type': 'application/vnd.ipld.car' },
  })
  expect(imported.status).toBe(200)
  const { db } = pds.ctx
  let rows = 0
  const reader: Reader = {
    get: (query) => db.get(query),
    async all<Row>(query: Sql) {
      const found = await db.all<Row>(query)
      rows += found.length
      return found
    },
  }
  const pieces: number[] = []
  const references = blobHealth.referenceFaults(pds.ctx, reader, did as Did, {
    after: '',
    isDue: () => false,
    async throttled(work) {
      rows = 0
      const result = await work()
      pieces.push(rows)
      return result
    },
  })
  expect((await references).faults).toEqual([])
  expect(Math.max(...pieces)).toBeWithin(300, 600)
})

test('of many writes, the newest are checked out of turn', async () => {
  const { db } = pds.ctx
  // Nodes number what they have written in no order of their own.
  const logged = async () => {
    const { did } = await joined(1)
    const [{ rev }] = (await pds.rows('repo', { did }, ['rev'])) as [{ rev: string }]
    await until(async () => (await newestCommitEvent(db, did as Did))?.rev === rev)
    return did as Did
  }
  const [, last] = [await logged(), await logged()]
  expect((await writtenSince(db, 0, 2)).dids).toEqual([last])
})

test('a pass that finds nothing to do writes nothing', async () => {
  await faultsAfterRound(await joined(1))
  const { counters } = pds.ctx.db
  const commits: number[] = []
  for (let attempt = 0; attempt < 3; attempt++) {
    const before = counters.commits
    await pds.runSweep('integrity')
    commits.push(counters.commits - before)
  }
  // Nodes of a cluster tell each other of a pass with two statements.
  expect(Math.min(...commits)).toBe(pds.ctx.db.cluster === null ? 0 : 2)
})

test('a repository that is replaced by an import while it is read is not said to be damaged', async () => {
  const account = await joined(300)
  const did = account.did as Did
  const archives: Uint8Array[] = []
  for (const rkey of ['one', 'two']) {
    const archive = await fetch(`${pds.url}/xrpc/com.atproto.sync.getRepo?did=${did}`)
    archives.push(new Uint8Array(await archive.arrayBuffer()))
    await withBlob(account, rkey)
  }
  const replace = async (body: Uint8Array) => {
    const headers = { ...bearer(account.accessJwt), 'content-type': 'application/vnd.ipld.car' }
    const answer = await request(`${pds.url}/xrpc/com.atproto.repo.importRepo`, { method: 'POST', body, headers })
    expect(answer.status).toBe(200)
  }
  const { now } = performance
  let pieces = 0
  try {
    // Each piece is read in a state of its own, as those of a large repository are.
    performance.now = () => now.call(performance) + pieces * 10_000
    const faults = await faultsOfRepo(pds.ctx, did, async (work) => {
      pieces++
      if (pieces % 2 === 0 && archives.length > 0) await replace(archives.pop()!)
      return work()
    })
    expect(faults).toEqual([])
  } finally {
    performance.now = now
  }
  expect(archives).toEqual([])
  expect(await faultsAfterRound(account)).toEqual([])
})

test('an account that gets the number of a repository that was deleted or is lost has none of its rows, nor its findings', async () => {
  for (const end of ['deleted', 'lost'] as const) {
    const former = await joined(3)
    await pds.damage(
      'record',
      { repo_id: former.id, path: 'com.example.note/note1' },
      { value: new Uint8Array([0xa0]) },
    )
    expect(await faultsAfterRound(former)).not.toEqual([])
    if (end === 'lost') await pds.lose('repo', { id: former.id })
    else {
      await request(`${pds.url}/xrpc/com.atproto.admin.deleteAccount`, {
        headers: bearer(ADMIN_TOKEN),
        json: { did: former.did },
      })
      await pds.runSweep('abandoned-repos')
    }
    const next = await createAccount(pds, `next${end}`)
    const { body } = await next.call(`com.atproto.repo.listRecords?repo=${next.did}&collection=com.example.note`)
    expect(body.records).toEqual([])
    expect(await faultsAfterRound(next)).toEqual([])
    const damaged = (await view()).damaged.map(({ did }) => did).filter((did) => [former.did, next.did].includes(did))
    expect(damaged).toEqual(end === 'lost' ? [former.did] : [])
  }
})
