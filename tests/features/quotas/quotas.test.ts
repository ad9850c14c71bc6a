/** Quotas of records and blobs: who has which, what counts, and what is refused above them. */
import { describe, expect, test } from 'bun:test'
import { connect } from 'node:net'
import { createAccount, type TestAccount } from '../../support/clients/account.ts'
import { parseCid } from '../../../src/protocol/cid.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { bearer, request, type Answer } from '../../support/clients/http.ts'
import { randomBytes, Uploader } from '../../support/clients/uploader.ts'
import { leastCost } from '../../support/least-cost.ts'
import { ADMIN_TOKEN } from '../../support/servers/pds.ts'
import { useWorld } from '../../support/world.ts'

const collection = 'com.example.note'
const { pds } = useWorld({
  config: {
    rateLimit: { enabled: false },
    repos: { maxRecordsPerAccount: 5 },
    blobs: { maxStoragePerAccount: 100_000, tempTtlSecs: 0 },
  },
})

const admin = (path: string, json?: object): Promise<Answer> =>
  request(`${pds.url}/v1/admin/${path}`, { headers: bearer(ADMIN_TOKEN), ...(json ? { method: 'POST', json } : {}) })
const give = (account: { did: string }, json: object) => admin(`accounts/${account.did}/quota`, json)
const full = (what: string) => ({
  status: 413,
  body: { error: 'PayloadTooLarge', message: expect.stringContaining(what) },
})

const create = (account: TestAccount, rkey: string) =>
  account.call('com.atproto.repo.createRecord', {
    json: { repo: account.did, collection, rkey, record: { text: rkey } },
  })
const remove = (account: TestAccount, rkey: string) =>
  account.call('com.atproto.repo.deleteRecord', { json: { repo: account.did, collection, rkey } })
const apply = (account: TestAccount, writes: readonly object[]) =>
  account.call('com.atproto.repo.applyWrites', { json: { repo: account.did, writes } })
const write = (kind: string, rkey: string) => ({
  $type: `com.atproto.repo.applyWrites#${kind}`,
  collection,
  rkey,
  ...(kind === 'delete' ? {} : { value: { $type: collection, text: kind } }),
})
async function fill(account: TestAccount, count: number): Promise<void> {
  for (let i = 0; i < count; i++) expect((await create(account, `r${i}`)).status).toBe(200)
}
const usedBy = async ({ did }: { did: string }) => (await admin(`accounts/${did}/quota`)).body.used

describe('records', () => {
  test('stop at the quota of the configuration; changes and deletions do not', async () => {
    const alice = await createAccount(pds, 'alice')
    await fill(alice, 5)
    expect(await create(alice, 'r5')).toMatchObject(full('quota of 5 records'))
    expect((await apply(alice, [write('update', 'r0')])).status).toBe(200)
    expect(await apply(alice, [write('delete', 'r0'), write('create', 'a'), write('create', 'b')])).toMatchObject(
      full('quota of 5 records'),
    )
    expect((await apply(alice, [write('delete', 'r0'), write('create', 'a')])).status).toBe(200)
    expect((await remove(alice, 'a')).status).toBe(200)
    expect((await create(alice, 'r5')).status).toBe(200)
    expect(await create(alice, 'r6')).toMatchObject(full('quota of 5 records'))
    expect(await usedBy(alice)).toEqual({ records: 5, blobBytes: 0 })
  })

  test('of writers at the same time do not exceed it together', async () => {
    const bob = await createAccount(pds, 'bob')
    const answers = await Promise.all(Array.from({ length: 9 }, (_, i) => create(bob, `r${i}`)))
    expect(answers.map(({ status }) => status).toSorted()).toEqual([...Array(5).fill(200), ...Array(4).fill(413)])
    expect(await usedBy(bob)).toMatchObject({ records: 5 })
  })

  test('that an account has above its quota stay, and can be deleted one by one', async () => {
    const carol = await createAccount(pds, 'carol')
    await fill(carol, 4)
    expect((await give(carol, { records: 2 })).body.quota.records).toBe(2)
    expect(await create(carol, 'r4')).toMatchObject(full('quota of 2 records'))
    expect((await remove(carol, 'r0')).status).toBe(200)
    expect(await create(carol, 'r4')).toMatchObject(full('quota of 2 records'))
    await remove(carol, 'r1')
    await remove(carol, 'r2')
    expect((await create(carol, 'r4')).status).toBe(200)
  })

  test('are counted when a quota comes later, and cost a commit no statement', async () => {
    const dora = await createAccount(pds, 'dora')
    await give(dora, { records: 0 })
    let records = 0
    const cost = () =>
      leastCost(pds.ctx.db, async () => expect((await create(dora, `counted${records++}`)).status).toBe(200))
    const without = await cost()
    await give(dora, { records: 100 })
    expect(await cost()).toBe(without)
    await give(dora, { records: 4 })
    expect(await create(dora, 'over')).toMatchObject(full('quota of 4 records'))
  })

  test('of an imported archive count, and too many are refused', async () => {
    const erin = await createAccount(pds, 'erin')
    await fill(erin, 4)
    const archive = await (await fetch(`${pds.url}/xrpc/com.atproto.sync.getRepo?did=${erin.did}`)).arrayBuffer()
    const arrive = () =>
      request(`${pds.url}/xrpc/com.atproto.repo.importRepo`, {
        method: 'POST',
        body: archive,
        headers: { 'content-type': 'application/vnd.ipld.car', ...bearer(erin.accessJwt) },
      })
    await remove(erin, 'r0')
    await give(erin, { records: 3 })
    expect(await arrive()).toMatchObject(full('quota of 3 records'))
    expect(await usedBy(erin)).toMatchObject({ records: 3 })
    await give(erin, { records: 4 })
    expect((await arrive()).status).toBe(200)
    expect(await create(erin, 'r4')).toMatchObject(full('quota of 4 records'))
    await remove(erin, 'r1')
    expect((await create(erin, 'r4')).status).toBe(200)
  })
})

describe('blobs', () => {
  test('stop at the quota of their account', async () => {
    const frank = await Uploader.join(pds, 'frank')
    await give(frank, { blobBytes: 1000 })
    const kept = await frank.upload(randomBytes(900))
    expect(await frank.post(randomBytes(101))).toMatchObject(full('quota of 1000 bytes of blobs'))
    expect((await frank.post(randomBytes(100))).status).toBe(200)
    expect(await usedBy(frank)).toEqual({ records: 0, blobBytes: 1000 })
    await frank.refer(`${collection}/a`, kept)
    pds.clock.advance({ secs: 1 })
    await pds.runSweep('blob-gc')
    expect(await usedBy(frank)).toEqual({ records: 1, blobBytes: 900 })
    await give(frank, { blobBytes: 0 })
    expect((await frank.post(randomBytes(150_000))).status).toBe(200)
  })

  test('that cannot fit are refused before they are sent, unless the account may own them already', async () => {
    const grace = await Uploader.join(pds, 'grace')
    await give(grace, { blobBytes: 1000 })
    const owned = randomBytes(600)
    await grace.upload(owned)
    expect(await headersOnly(grace, 700)).toStartWith('HTTP/1.1 413')
    expect((await grace.post(owned)).status).toBe(200)
    expect(await grace.post(randomBytes(600))).toMatchObject(full('quota of 1000 bytes of blobs'))
  })

  test('are not added up again for each upload, but before one is refused', async () => {
    const nina = await Uploader.join(pds, 'nina')
    await nina.upload(randomBytes(100))
    const [row] = await pds.rows('blob', { did: nina.did })
    await pds.plant('blob', [{ ...row!, cid: 'behind the back', size: 99_800 }])
    // Several nodes may add blobs to a database of PostgreSQL, so each adds all of them up.
    const isCounted = pds.ctx.db.dialect.name === 'postgres'
    expect((await nina.post(randomBytes(101))).status).toBe(isCounted ? 413 : 200)
    expect(await nina.post(randomBytes(99_900))).toMatchObject(full('quota of 100000 bytes of blobs'))
    await pds.lose('blob', { did: nina.did, cid: 'behind the back' })
    expect((await nina.post(randomBytes(99_000))).status).toBe(200)
  })

  test('of others that records refer to are not taken over beyond the quota', async () => {
    const oscar = await Uploader.join(pds, 'oscar')
    const pete = await Uploader.join(pds, 'pete')
    await give(pete, { blobBytes: 1000 })
    const blobs = await Promise.all([600, 601, 300].map((size) => oscar.upload(randomBytes(size))))
    await oscar.refer(`${collection}/a`, ...blobs)
    await pete.importRecords({
      [`${collection}/a`]: {
        $type: collection,
        blobs: blobs.map((blob) => ({ ...blob, ref: parseCid(blob.ref.$link)! })),
      },
    })
    expect(await pds.runSweep('blob-gc')).toMatchObject({ adopted: 2, errors: 0 })
    expect((await usedBy(pete)).blobBytes).toBeWithin(900, 902)
    const missing = await request(`${pds.url}/xrpc/com.atproto.repo.listMissingBlobs`, { headers: bearer(pete.token) })
    expect(missing.body.blobs).toHaveLength(1)
  })

  /** The first line of the answer to an upload that announces its length and sends nothing. */
  function headersOnly({ token }: Uploader, length: number): Promise<string> {
    const { promise, resolve, reject } = Promise.withResolvers<string>()
    const { hostname, port, host } = new URL(pds.url)
    const socket = connect({ host: hostname, port: Number(port) })
    socket.on('error', reject)
    socket.once('data', (answer) => {
      socket.destroy()
      resolve(answer.toString())
    })
    socket.write(
      `POST /xrpc/com.atproto.repo.uploadBlob HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer ${token}\r\ncontent-type: image/png\r\ncontent-length: ${length}\r\n\r\n`,
    )
    return promise
  }
})

describe('a holder', () => {
  const mailsTo = async ({ email }: TestAccount) => {
    await pds.runSteps()
    return pds.mails.filter(({ to }) => to === email).map(({ subject, text }) => `${subject}\n${text}`)
  }

  test('is warned once at four fifths and once near the end, and again after another quota was set', async () => {
    const judy = await createAccount(pds, 'judy')
    await give(judy, { records: 10 })
    await fill(judy, 7)
    expect(await mailsTo(judy)).toEqual([])
    await create(judy, 'r7')
    expect(await mailsTo(judy)).toEqual([expect.stringMatching(/80% full[^]*stores 8 of at most 10 records/)])
    await remove(judy, 'r7')
    await create(judy, 'r7')
    expect(await mailsTo(judy)).toHaveLength(1)
    await apply(judy, [write('create', 'r8'), write('create', 'r9')])
    expect((await mailsTo(judy)).slice(1)).toEqual([expect.stringMatching(/100% full/)])
    await give(judy, { records: 11 })
    await create(judy, 'r10')
    expect((await mailsTo(judy)).slice(2)).toEqual([expect.stringMatching(/11 of at most 11 records/)])
  })

  test('is warned of media too, and a blob that is sent again is no reason', async () => {
    const karl = await createAccount(pds, 'karl')
    const uploader = Uploader.at(pds, karl.did as Did, karl.accessJwt)
    const bytes = randomBytes(90_000)
    for (let i = 0; i < 2; i++) await uploader.upload(bytes)
    expect(await mailsTo(karl)).toEqual([expect.stringMatching(/90% full[^]*0.1 of at most 0.1 MB of media/)])
  })

  test('without an address is not warned, and not kept from writing', async () => {
    const lara = await createAccount(pds, 'lara')
    await pds.damage('account', { did: lara.did }, { email: null })
    await fill(lara, 5)
    expect(await usedBy(lara)).toMatchObject({ records: 5 })
  })
})

describe('an operator', () => {
  test('sets the quotas of all accounts while the server runs, and takes them back', async () => {
    const heidi = await createAccount(pds, 'heidi')
    expect((await admin('quota', { records: 1 })).body).toEqual({
      quota: { records: 1, blobBytes: 100_000 },
      own: { records: 1, blobBytes: null },
    })
    await fill(heidi, 1)
    expect(await create(heidi, 'r1')).toMatchObject(full('quota of 1 records'))
    await give(heidi, { records: 2 })
    expect((await create(heidi, 'r1')).status).toBe(200)
    expect((await admin('quota', { records: null, blobBytes: 50 })).body).toEqual({
      quota: { records: 5, blobBytes: 50 },
      own: { records: null, blobBytes: 50 },
    })
    expect((await admin('quota', { blobBytes: null })).body.own).toEqual({ records: null, blobBytes: null })
    expect((await admin('audit?action=quota_set')).body.events[0]).toMatchObject({
      actor: 'master-token',
      detail: '{"records":null,"blobBytes":null}',
    })
  })

  test('sees the quota of each account in its reports', async () => {
    const ivan = await Uploader.join(pds, 'ivan')
    await ivan.upload(randomBytes(500))
    expect((await give(ivan, { blobBytes: 1000 })).body).toEqual({
      did: ivan.did,
      quota: { records: 5, blobBytes: 1000 },
      own: { records: null, blobBytes: 1000 },
      used: { records: 0, blobBytes: 500 },
    })
    const storage = () => request(`${pds.url}/v1/accounts/${ivan.did}/storage`, { headers: bearer(ADMIN_TOKEN) })
    expect((await storage()).body).toMatchObject({ quotaBytes: 1000, quotaUsedPct: 50 })
    const listed = (await admin(`accounts?q=${ivan.did}`)).body
    expect(listed).toMatchObject({ quotaBytes: 100_000, accounts: [{ quotaUsedPct: 50 }] })
    await give(ivan, { blobBytes: 0 })
    expect((await storage()).body).toMatchObject({ quotaBytes: 0, quotaUsedPct: 0 })
    expect((await admin(`audit?subject=${ivan.did}`)).body.events).toHaveLength(2)
  })

  test.each([
    [{}, 400],
    [{ records: -1 }, 422],
    [{ records: 1.5 }, 422],
    [{ blobBytes: '1GB' }, 422],
    [{ blobBytes: 2 ** 53 }, 422],
  ])('is refused %p', async (quota, status) => {
    expect((await admin('quota', quota)).status).toBe(status)
  })

  test('gets 404 for an account that is not here', async () => {
    expect((await give({ did: 'did:plc:aaaaaaaaaaaaaaaaaaaaaaaa' }, { records: 1 })).status).toBe(404)
  })
})
