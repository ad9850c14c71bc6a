/** The operator's interface: accounts, health, relay, claim codes. */
import { expect, test } from 'bun:test'
import { createAccount, xrpc } from '../../support/clients/account.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { ADMIN_TOKEN, startPds, type TestPds } from '../../support/servers/pds.ts'
import { startUpstream } from '../../support/servers/upstream.ts'
import { useWorld } from '../../support/world.ts'

const { pds } = useWorld()

const ask = (path: string, on: Pick<TestPds, 'url'> = pds) => request(on.url + path, { headers: bearer(ADMIN_TOKEN) })
const tell = (path: string, json?: unknown, on: Pick<TestPds, 'url'> = pds) =>
  request(on.url + path, { method: 'POST', headers: bearer(ADMIN_TOKEN), ...(json === undefined ? {} : { json }) })

test('every route is for operators alone', async () => {
  for (const path of [
    '/v1/admin/accounts',
    '/v1/admin/health',
    '/v1/admin/relay-status',
    '/v1/accounts/claim-codes',
    '/v1/accounts/did:plc:abc/storage',
  ])
    expect(await request(pds.url + path)).toMatchObject({ status: 401, body: { error: { code: 'UNAUTHORIZED' } } })
  expect(await request(`${pds.url}/v1/admin/request-crawl`, { method: 'POST' })).toMatchObject({ status: 401 })
})

test('accounts are listed with their state and usage, flagged ones first, in pages', async () => {
  const [ann, bob, cat] = [
    await createAccount(pds, 'ann'),
    await createAccount(pds, 'bob'),
    await createAccount(pds, 'cat'),
  ]
  await pds.damage('account', { did: bob.did }, { deactivated_at: 1 })
  const last = [ann, bob, cat].toSorted((a, b) => (a.did < b.did ? -1 : 1))[2]!
  await pds.plant('account_flag', { labeler: 'did:plc:labeler', did: last.did, val: 'spam', labelled_at: 1 })

  const first = await ask('/v1/admin/accounts?limit=2')
  expect(first.body.accounts[0]).toMatchObject({
    did: last.did,
    handle: last.handle,
    flags: [{ val: 'spam', labelerDid: 'did:plc:labeler' }],
    totalBytes: 0,
  })
  expect(first.body).toMatchObject({ flaggedTotal: 1, quotaBytes: pds.ctx.config.blobs.maxStoragePerAccount })
  const second = await ask(`/v1/admin/accounts?limit=2&cursor=${first.body.cursor}`)
  const dids = [...first.body.accounts, ...second.body.accounts].map(({ did }) => did)
  expect(dids.toSorted()).toEqual([ann.did, bob.did, cat.did].toSorted())
  expect(second.body.cursor).toBeUndefined()

  const found = async (query: string) =>
    (await ask(`/v1/admin/accounts?${query}`)).body.accounts.map(({ handle }: { handle: string }) => handle)
  expect(await found('status=deactivated')).toEqual(['bob.test'])
  expect(await found('q=ANN@example')).toEqual(['ann.test'])
  expect(await found('q=%25')).toEqual([])
  expect(await found('q=cat.test&cursor=nonsense')).toEqual(['cat.test'])
  expect(await ask('/v1/admin/accounts?status=asleep')).toMatchObject({
    status: 400,
    body: { error: { code: 'InvalidRequest' } },
  })
  expect(await ask('/v1/admin/accounts?limit=two')).toMatchObject({ status: 400 })
  expect(await ask(`/v1/accounts/${ann.did}/storage`)).toMatchObject({
    status: 200,
    body: { blobCount: 0, largestBlob: null },
  })
  await ann.call('com.atproto.repo.createRecord', {
    json: { repo: ann.did, collection: 'org.example.note', record: { text: 'counted' } },
  })
  expect(await ask(`/v1/accounts/${ann.did}/usage`)).toMatchObject({
    status: 200,
    body: { recordsCount: 1, commitsCount: 2, blobsCount: 0, storageBytes: 0, lastActive: expect.stringMatching(/Z$/) },
  })
  expect(await ask(`/v1/accounts/${cat.did}/usage`)).toMatchObject({ body: { recordsCount: 0, lastActive: null } })
  expect(await ask('/v1/accounts/did:plc:aaaaaaaaaaaaaaaaaaaaaaaa/storage')).toMatchObject({
    status: 404,
    body: { error: { code: 'NOT_FOUND' } },
  })
})

test('flagged accounts come first on all pages, of whatever size', async () => {
  await using own = await startPds({ rateLimit: { enabled: false } })
  const made = []
  for (const name of ['a', 'b', 'c', 'd', 'e']) made.push((await createAccount(own, `page-${name}`)).did)
  const [first, , third, , fifth] = made.toSorted()
  const flag = (did: string) => ({ labeler: 'did:plc:labeler', did, val: 'spam', labelled_at: 1 })
  await own.plant('account_flag', [flag(fifth!), flag(third!), { ...flag(third!), val: 'rude' }, flag('did:plc:gone')])
  await own.plant('account_flag', { ...flag(first!), expires_at: 1 })
  const expected = [third, fifth, ...made.toSorted().filter((did) => did !== third && did !== fifth)]
  for (const limit of [1, 2, 3, 5, 100]) {
    const listed = []
    for (let cursor: string | undefined = ''; cursor !== undefined;) {
      const { body } = await ask(`/v1/admin/accounts?limit=${limit}&cursor=${encodeURIComponent(cursor)}`, own)
      expect(body.flaggedTotal).toBe(2)
      listed.push(...body.accounts.map(({ did }: { did: string }) => did))
      cursor = body.cursor
    }
    expect([limit, ...listed]).toEqual([limit, ...expected])
  }
})

test('of many blobs the health report counts again after ten minutes, and of few each time', async () => {
  await using own = await startPds({ rateLimit: { enabled: false } }, { alone: 'each node keeps what it has counted' })
  const alice = await createAccount(own, 'alice')
  const plant = (from: number, count: number, did = alice.did) =>
    own.plant(
      'blob',
      Array.from({ length: count }, (_, i) => ({
        did,
        cid: `blob ${from + i}`,
        mime_type: 'image/png',
        size: 2,
        uploaded_at: 1,
      })),
    )
  const report = async () => (await ask('/v1/admin/health', own)).body
  const counted = async () => (await report()).storage
  await plant(0, 10)
  await plant(10, 3, 'did:plc:gone')
  expect(await counted()).toMatchObject({
    blobCount: 13,
    blobBytes: 26,
    blobUnownedCount: 3,
    blobUnownedBytes: 6,
  })
  await plant(13, 50_000)
  expect(await counted()).toMatchObject({ blobCount: 50_013, blobBytes: 100_026 })
  const { countedAt } = await report()
  await plant(60_000, 1)
  own.clock.advance({ secs: 590 })
  expect(await report()).toMatchObject({ countedAt, storage: { blobCount: 50_013 } })
  own.clock.advance({ secs: 11 })
  const answers = await Promise.all([counted(), counted()])
  expect(answers).toMatchObject([{ blobCount: 50_014 }, { blobCount: 50_014 }])
  expect(Date.parse((await report()).countedAt) - Date.parse(countedAt)).toBeGreaterThanOrEqual(601_000)
})

test('a sweep that lacks a setting is refused, and neither counts as failed nor is in the audit log', async () => {
  expect(await tell('/v1/admin/sweeps/backup/run')).toMatchObject({
    status: 400,
    body: { error: { message: 'backup.destination is not set' } },
  })
  expect((await pds.ctx.sweeps.failures()).has('backup')).toBe(false)
  expect((await ask('/v1/admin/audit?action=sweep_run')).body.events).toEqual([])
  expect((await tell('/v1/admin/sweeps/back-up/run')).status).toBe(404)
})

test('health tells raw numbers, and a sweep only after its first pass', async () => {
  const before = (await ask('/v1/admin/health')).body
  expect(before.accounts.total).toBe(
    before.accounts.active + before.accounts.deactivated + before.accounts.suspended + before.accounts.takendown,
  )
  expect(before.sweeps.adminNonceSweep).toBeNull()
  expect(before.notifyQueueDepth).toBeNull()
  await pds.runSweep('admin-nonce-sweep')
  const after = (await ask('/v1/admin/health')).body
  expect(after.sweeps.adminNonceSweep).toMatchObject({
    swept: expect.any(Number),
    errors: 0,
    completedAt: expect.any(Number),
  })
  expect(after.firehose.currentSeq).toBeGreaterThan(0)
  expect(after.storage.blockCount).toBeGreaterThan(0)
})

test('without a crawler the relay is nobody, and nothing is asked of it', async () => {
  expect(await ask('/v1/admin/relay-status')).toMatchObject({
    status: 200,
    body: { relayHost: null, reachable: false, gap: null },
  })
  expect(await tell('/v1/admin/request-crawl')).toMatchObject({
    status: 400,
    body: { error: { code: 'InvalidRequest' } },
  })
})

test('a relay is asked what it knows of this host, and to crawl it', async () => {
  await using relay = startUpstream()
  await using other = await startPds({ publicUrl: 'https://pds.example.com', crawlers: { urls: [relay.url] } })
  relay.answer('com.atproto.sync.requestCrawl', () => Response.json({}))
  relay.answer('com.atproto.sync.getHostStatus', () =>
    Response.json({ hostname: 'pds.example.com', status: 'active', seq: 3, accountCount: 7 }),
  )
  const status = await ask('/v1/admin/relay-status', other)
  expect(status.body).toMatchObject({
    reachable: true,
    relayStatus: 'active',
    relaySeq: 3,
    accountCount: 7,
    pdsHeadSeq: 0,
    gap: -3,
  })
  const asked = relay.received.find(({ path }) => path.includes('getHostStatus'))
  expect(asked!.path).toContain('hostname=pds.example.com')
  relay.answer('com.atproto.sync.getHostStatus', () => Response.json({ error: 'HostNotFound' }, { status: 400 }))
  expect((await ask('/v1/admin/relay-status', other)).body).toMatchObject({
    reachable: true,
    relayStatus: null,
    detail: expect.any(String),
  })

  expect((await tell('/v1/admin/request-crawl', undefined, other)).body).toMatchObject({ requested: 1, accepted: 1 })
  relay.answer('com.atproto.sync.requestCrawl', () => new Response(null, { status: 403 }))
  expect((await tell('/v1/admin/request-crawl', undefined, other)).body).toMatchObject({
    accepted: 0,
    relays: [{ accepted: false, detail: 'HTTP 403' }],
  })
  expect((await ask('/v1/admin/audit?action=request_crawl', other)).body.events).toHaveLength(2)
})

test('a claim code lets one person in, once, in time, unless it is revoked', async () => {
  await using closed = await startPds({ inviteCodeRequired: true })
  const mint = async (json: unknown) => tell('/v1/accounts/claim-codes', json, closed)
  const join = (handle: string, inviteCode: string) =>
    xrpc(closed, 'com.atproto.server.createAccount', {
      json: { handle: `${handle}.test`, email: `${handle}@example.com`, password: 'long enough to be one', inviteCode },
    })
  const [used, revoked, late] = (await mint({ count: 3 })).body.codes as [string, string, string]
  expect(used).toMatch(/^[A-Z0-9]{6}$/)

  expect(await join('one', used)).toMatchObject({ status: 200 })
  expect(await join('two', used)).toMatchObject({ status: 400, body: { error: 'InvalidInviteCode' } })
  const revoke = (code: string) => tell('/v1/accounts/claim-codes/revoke', { code }, closed)
  expect(await revoke(used)).toMatchObject({ status: 409, body: { error: { code: 'CLAIM_CODE_REDEEMED' } } })
  expect(await revoke('ZZZZZZZ')).toMatchObject({ status: 404 })
  for (let i = 0; i < 2; i++)
    expect(await revoke(revoked)).toMatchObject({ status: 200, body: { code: revoked, status: 'revoked' } })
  expect((await ask('/v1/admin/audit?action=claim_code_revoked', closed)).body.events).toHaveLength(1)
  expect(await join('two', revoked)).toMatchObject({ status: 400, body: { error: 'InvalidInviteCode' } })
  closed.clock.advance({ secs: 86_401 })
  expect(await join('two', late)).toMatchObject({ status: 400, body: { error: 'InvalidInviteCode' } })

  const list = (await ask('/v1/accounts/claim-codes', closed)).body.codes as { code: string; status: string }[]
  expect(Object.fromEntries(list.map(({ code, status }) => [code, status]))).toEqual({
    [used]: 'redeemed',
    [revoked]: 'revoked',
    [late]: 'expired',
  })
  const page = (await ask('/v1/accounts/claim-codes?limit=2', closed)).body
  expect((await ask(`/v1/accounts/claim-codes?limit=2&cursor=${page.cursor}`, closed)).body.codes).toHaveLength(1)
  for (const json of [
    { count: 0 },
    { count: 11 },
    { count: 1, expiresInHours: 0 },
    { count: 1, expiresInHours: 2_400_000_000 },
    { count: 1, expiresInHours: 1e300 },
  ])
    expect(await mint(json)).toMatchObject({ status: 400, body: { error: { code: 'INVALID_CLAIM' } } })
  expect(await mint({})).toMatchObject({ status: 422 })
  expect(JSON.stringify((await ask('/v1/admin/audit', closed)).body)).not.toContain(late)
})

test('one account is looked up by DID, handle or address, which stand in the body', async () => {
  const dora = await createAccount(pds, 'dora')
  for (const account of [dora.did, dora.handle, 'Dora@Example.com']) {
    expect(await tell('/v1/admin/accounts/lookup', { account })).toMatchObject({
      status: 200,
      body: {
        did: dora.did,
        handle: dora.handle,
        email: dora.email,
        emailConfirmedAt: null,
        status: 'active',
        deactivatedAt: null,
        takedownRef: null,
        hasPassword: true,
        invitesDisabled: false,
        flags: [],
      },
    })
  }
  for (const account of ['', 'dora', 'nobody.test', 'nobody@example.com', '%@%'])
    expect(await tell('/v1/admin/accounts/lookup', { account })).toMatchObject({
      status: 404,
      body: { error: { code: 'NOT_FOUND' } },
    })
  expect(await tell('/v1/admin/accounts/lookup', {})).toMatchObject({ status: 422 })
  expect(
    await request(`${pds.url}/v1/admin/accounts/lookup`, {
      json: { account: dora.did },
      headers: bearer(dora.accessJwt),
    }),
  ).toMatchObject({ status: 401 })
})
