/** Moving in: what an import leaves, and everything that it must not. */
import { expect, test } from 'bun:test'
import { readCar, verifyRepoCar } from '@atproto/repo'
import { readdirSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { serverRotationKey } from '../../../src/features/identity/identity/identity.ts'
import { signingKeyOf } from '../../../src/features/identity/account-keys/account-keys.ts'
import { stageBlocks, stageRepo } from '../../../src/features/data/repo/repo.ts'
import { cidOfBlob } from '../../../src/protocol/cid.ts'
import type { Did, Tid } from '../../../src/protocol/identifiers.ts'
import { formatDidKey, signingKey } from '../../../src/protocol/keys.ts'
import { nextOperation, signOperation } from '../../../src/protocol/plc.ts'
import { nextTid } from '../../../src/protocol/tid.ts'
import { createAccount, type TestAccount } from '../../support/clients/account.ts'
import { archiveOf, post } from '../../support/archive.ts'
import { basic, bearer, request, type Answer } from '../../support/clients/http.ts'
import { ADMIN_TOKEN, startPds, type TestPds } from '../../support/servers/pds.ts'
import { Subscriber } from '../../support/clients/subscriber.ts'
import { useWorld } from '../../support/world.ts'
import { atOneNode, OTHER_NODE } from '../../support/turns.ts'
import { until } from '../../support/until.ts'
import { thrownBy } from '../../support/thrown.ts'

const CAR = 'application/vnd.ipld.car'
const collection = 'app.bsky.feed.post'

const { pds } = useWorld()

const foreignKey = signingKey('k256', new Uint8Array(32).fill(9))
const revAt = (millis: number) => nextTid(null, millis * 1000, 7)
const importCar = (
  account: TestAccount,
  body: NonNullable<RequestInit['body']>,
  headers: Record<string, string> = {},
): Promise<Answer> =>
  request(`${pds.url}/xrpc/com.atproto.repo.importRepo`, {
    method: 'POST',
    body,
    headers: { 'content-type': CAR, ...bearer(account.accessJwt), ...headers },
  })
const asBody = (bytes: Uint8Array) => bytes as Uint8Array<ArrayBuffer>

async function exported(did: string): Promise<Uint8Array> {
  return new Uint8Array(await (await fetch(`${pds.url}/xrpc/com.atproto.sync.getRepo?did=${did}`)).arrayBuffer())
}

async function write(account: TestAccount, text: string): Promise<{ uri: string; cid: string }> {
  const { status, body } = await account.call('com.atproto.repo.createRecord', {
    json: { repo: account.did, collection, record: post(text) },
  })
  expect(status).toBe(200)
  return body
}

async function state(account: TestAccount): Promise<{ texts: string[]; head: { cid: string; rev: Tid } }> {
  const { body } = await account.call(
    `com.atproto.repo.listRecords?repo=${account.did}&collection=${collection}&limit=100`,
  )
  const head = (await account.call(`com.atproto.sync.getLatestCommit?did=${account.did}`)).body
  return { texts: body.records.map(({ value }: { value: { text: string } }) => value.text).toSorted(), head }
}

async function verifiedPaths(account: TestAccount): Promise<string[]> {
  const key = formatDidKey((await signingKeyOf(pds.ctx, pds.ctx.db, account.did as Did))!.publicKey)
  const { creates } = await verifyRepoCar(await exported(account.did), account.did, key)
  return creates.map(({ collection, rkey }) => `${collection}/${rkey}`).toSorted()
}

const verified = async (account: TestAccount) =>
  (await verifiedPaths(account)).map((path) => path.split('/')[1]!).toSorted()

/** Rows of repositories that no account has adopted, after the sweep. */
async function abandonedRows(): Promise<number> {
  await pds.runSweep('abandoned-repos')
  const present = new Set((await pds.rows('repo', {}, ['id'])).map(({ id }) => id))
  const tables = ['record', 'large_record', 'repo_node'] as const
  const parts = (await Promise.all(tables.map((table) => pds.rows(table, {}, ['repo_id'])))).flat()
  return (await pds.count('repo', { did: null })) + parts.filter((row) => !present.has(row.repo_id)).length
}

const records = (count: number) =>
  Object.fromEntries(
    Array.from({ length: count }, (_, i) => [`${collection}/${String(i).padStart(6, '0')}`, post(`imported ${i}`)]),
  )

test('an archive takes the place of the repository, under a commit of ours that is newer than both', async () => {
  const alice = await createAccount(pds, 'alice')
  await write(alice, 'goes away')
  const before = await state(alice)
  const rev = revAt(pds.clock.now() + 60_000)
  const answer = await importCar(alice, asBody(archiveOf(alice.did, rev, records(40), foreignKey).bytes))
  expect(answer).toMatchObject({ status: 200, body: '' })

  const after = await state(alice)
  expect(after.texts).toEqual(Array.from({ length: 40 }, (_, i) => `imported ${i}`).toSorted())
  expect(after.head.rev > before.head.rev && after.head.rev > rev).toBe(true)
  expect(await verified(alice)).toEqual(Object.keys(records(40)).map((path) => path.split('/')[1]!))
  await write(alice, 'goes on')
  expect(await verified(alice)).toHaveLength(41)
  expect(await abandonedRows()).toBe(0)
})

test('large records of a repository that is replaced are deleted a few at a time', async () => {
  const { ctx } = pds
  const account = await createAccount(pds, 'heavy')
  await write(account, 'stays small')
  const [{ id }] = (await pds.rows('repo', { did: account.did }, ['id'])) as [{ id: number }]
  const [row] = await pds.rows('record', { repo_id: id })
  const large = { ...row!, value: new Uint8Array(600_000) }
  for (let i = 0; i < 20; i++) await pds.plant('record', { ...large, path: `${collection}/large${i}` })
  for (let i = 0; i < 20; i++)
    await pds.plant('large_record', { repo_id: id, path: `${collection}/other${i}`, value: large.value })
  const archive = archiveOf(account.did, revAt(pds.clock.now()), records(3), foreignKey).bytes
  expect((await importCar(account, asBody(archive))).status).toBe(200)
  const { commits } = ctx.db.counters
  expect(await abandonedRows()).toBe(0)
  expect(ctx.db.counters.commits - commits).toBeGreaterThanOrEqual(20)
})

test('an import into an active account tells whoever follows it where the repository is now', async () => {
  const account = await createAccount(pds, 'followed')
  const reader = new Subscriber(pds.url)
  await reader.opened
  await importCar(account, asBody(archiveOf(account.did, revAt(pds.clock.now()), records(3), foreignKey).bytes))
  const { head } = await state(account)
  await importCar(account, asBody(await exported(account.did)))
  await write(account, 'first after')
  const [sync, commit] = await reader.until(2)
  expect(sync).toMatchObject({ type: '#sync', body: { did: account.did, rev: head.rev } })
  const { roots, blocks } = await readCar(sync!.body['blocks'] as Uint8Array)
  expect([roots.map(String), blocks.size]).toEqual([[head.cid], 1])
  // An import that changed nothing said nothing, and the next commit follows on what was told.
  expect(commit).toMatchObject({ type: '#commit', body: { repo: account.did, since: head.rev } })
  expect(commit!.body['ops']).toHaveLength(1)
  reader.close()
})

test('an import into an account that is not active tells nobody, and its activation does', async () => {
  const account = await createAccount(pds, 'silent')
  const reader = new Subscriber(pds.url)
  await reader.opened
  await account.call('com.atproto.server.deactivateAccount', { json: {} })
  await importCar(account, asBody(archiveOf(account.did, revAt(pds.clock.now()), records(3), foreignKey).bytes))
  await account.call('com.atproto.server.activateAccount', { method: 'POST' })
  const { head } = await state(account)
  const events = await reader.until(4)
  expect(events.map(({ type }) => type)).toEqual(['#account', '#account', '#identity', '#sync'])
  expect(events[3]!.body).toMatchObject({ did: account.did, rev: head.rev })
  reader.close()
})

test('what was exported can be imported again, and importing twice changes nothing', async () => {
  const bob = await createAccount(pds, 'bob')
  for (const text of ['one', 'two']) await write(bob, text)
  const saved = await exported(bob.did)
  await write(bob, 'three')
  for (let i = 0; i < 2; i++) {
    expect((await importCar(bob, asBody(saved))).status).toBe(200)
    expect((await state(bob)).texts).toEqual(['one', 'two'])
  }
  const { head } = await state(bob)
  expect((await importCar(bob, asBody(await exported(bob.did)))).status).toBe(200)
  expect((await state(bob)).head).toEqual(head)
  expect(await abandonedRows()).toBe(0)
})

test('a record that was taken down stays so, whatever the archive holds in its place', async () => {
  const walt = await createAccount(pds, 'walt')
  const first = await write(walt, 'first')
  await write(walt, 'second')
  const saved = await exported(walt.did)
  await write(walt, 'third')
  const setTakedown = async (uri: string, applied: boolean) => {
    const subject = { $type: 'com.atproto.repo.strongRef', uri, cid: first.cid }
    expect(
      (
        await request(`${pds.url}/xrpc/com.atproto.admin.updateSubjectStatus`, {
          headers: basic('admin', ADMIN_TOKEN),
          json: { subject, takedown: { applied, ref: 'spam' } },
        })
      ).status,
    ).toBe(200)
  }
  await setTakedown(first.uri, true)
  expect((await importCar(walt, asBody(saved))).status).toBe(200)
  expect((await state(walt)).texts).toEqual(['second'])
  const [, rkey] = first.uri.split(`${collection}/`)
  const changed = archiveOf(
    walt.did,
    revAt(pds.clock.now()),
    { [`${collection}/${rkey}`]: post('first, changed') },
    foreignKey,
  )
  expect((await importCar(walt, asBody(changed.bytes))).status).toBe(200)
  expect((await state(walt)).texts).toEqual([])
  await setTakedown(first.uri, false)
  expect((await state(walt)).texts).toEqual(['first, changed'])
})

test('thousands of records arrive whole, and blobs that they point at are known to be missing', async () => {
  const carol = await createAccount(pds, 'carol')
  const blob = cidOfBlob(Buffer.from('picture'))
  const many = {
    ...records(3000),
    'app.bsky.actor.profile/self': {
      $type: 'app.bsky.actor.profile',
      avatar: { $type: 'blob', ref: blob, mimeType: 'image/png', size: 7 },
    },
  }
  expect(
    (await importCar(carol, asBody(archiveOf(carol.did, revAt(pds.clock.now()), many, foreignKey).bytes))).status,
  ).toBe(200)
  expect(await verified(carol)).toHaveLength(3001)
  const missing = await carol.call('com.atproto.repo.listMissingBlobs')
  expect(missing.body.blobs).toEqual([
    { cid: blob.toString(), recordUri: `at://${carol.did}/app.bsky.actor.profile/self` },
  ])

  expect(
    (await importCar(carol, asBody(archiveOf(carol.did, revAt(pds.clock.now()), {}, foreignKey).bytes))).status,
  ).toBe(200)
  expect(await verified(carol)).toEqual([])
  expect((await carol.call('com.atproto.repo.listMissingBlobs')).body.blobs).toEqual([])
  expect(await abandonedRows()).toBe(0)
})

test('an import is stored in steps that others come between, and in few commits', async () => {
  using _ = atOneNode(pds, 'the transactions of one node are counted')
  const account = await createAccount(pds, 'steps')
  const { bytes } = archiveOf(account.did, revAt(pds.clock.now()), records(6000), foreignKey)
  const before = { ...pds.ctx.db.counters }
  expect((await importCar(account, asBody(bytes))).status).toBe(200)
  const { transactions, commits } = pds.ctx.db.counters
  expect(transactions - before.transactions).toBeGreaterThanOrEqual(6000 / 1000)
  expect(commits - before.commits).toBeLessThanOrEqual(5)
  expect(await verified(account)).toHaveLength(6000)
})

test('an archive that breaks at its end leaves everything as it was', async () => {
  const dave = await createAccount(pds, 'dave')
  await write(dave, 'stays')
  const before = await state(dave)
  const { bytes, root, blocks } = archiveOf(dave.did, revAt(pds.clock.now()), records(2000), foreignKey)
  const unparsed = archiveOf(
    dave.did,
    revAt(pds.clock.now()),
    { ...records(2000), [`${collection}/zzz`]: { text: 'no type' } },
    foreignKey,
  )
  expect([root.toString(), blocks.length]).toEqual([blocks[0]!.cid.toString(), blocks.length])
  expect(await importCar(dave, asBody(bytes.subarray(0, -5)))).toMatchObject({
    status: 400,
    body: { error: 'InvalidRequest' },
  })
  expect(await importCar(dave, asBody(unparsed.bytes))).toMatchObject({
    status: 400,
    body: { message: `Could not parse record at '${collection}/zzz'` },
  })
  expect(await state(dave)).toEqual(before)
  expect(await verified(dave)).toHaveLength(1)
  expect(await abandonedRows()).toBe(0)
  expect(readdirSync(pds.dataDir).filter((name) => name.endsWith('.tmp'))).toEqual([])
})

test('a write during an import wins, and the import is told', async () => {
  const erin = await createAccount(pds, 'erin')
  const { bytes } = archiveOf(erin.did, revAt(pds.clock.now()), records(100), foreignKey)
  const half = bytes.length / 2
  const { promise: written, resolve } = Promise.withResolvers<void>()
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      controller.enqueue(bytes.subarray(0, half))
      await written
      controller.enqueue(bytes.subarray(half))
      controller.close()
    },
  })
  const importing = importCar(erin, body)
  // The import has looked at the repository when it has opened its file.
  await until(() => archivesArriving(pds) > 0)
  await write(erin, 'meanwhile')
  resolve()
  expect(await importing).toMatchObject({ status: 409, body: { error: 'Conflict' } })
  expect((await state(erin)).texts).toEqual(['meanwhile'])
  expect(await abandonedRows()).toBe(0)
})

test('archives that stand still keep nobody else from moving in, and one network has no more than its part', async () => {
  await using crowded = await startPds({ rateLimit: { enabled: false } }, { alone: 'each node has places of its own' })
  const start = (account: TestAccount, client: string) => {
    const { promise: more, resolve: send } = Promise.withResolvers<void>()
    const { bytes } = archiveOf(account.did, revAt(crowded.clock.now()), records(10), foreignKey)
    const body = new ReadableStream<Uint8Array>({
      async pull(controller) {
        controller.enqueue(bytes.subarray(0, 100))
        await more
        controller.enqueue(bytes.subarray(100))
        controller.close()
      },
    })
    const answer = request(`${crowded.url}/xrpc/com.atproto.repo.importRepo`, {
      method: 'POST',
      body,
      headers: { 'content-type': CAR, 'x-forwarded-for': client, ...bearer(account.accessJwt) },
    })
    return { send, answer }
  }
  const accounts = await Promise.all(Array.from({ length: 6 }, (_, index) => createAccount(crowded, `mover${index}`)))
  const slow = accounts.slice(0, 4).map((account) => start(account, '192.0.2.1'))
  await until(() => archivesArriving(crowded) === slow.length)
  const refused = start(accounts[4]!, '192.0.2.1')
  refused.send()
  const answer = await refused.answer
  expect(answer).toMatchObject({ status: 503, body: { message: 'Too many of your imports are already running' } })
  expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
  const quick = start(accounts[5]!, '203.0.113.2')
  quick.send()
  expect((await quick.answer).status).toBe(200)
  for (const { send } of slow) send()
  expect(await Promise.all(slow.map(async ({ answer }) => (await answer).status))).toEqual([200, 200, 200, 200])
})

test('parts of a repository that is being built stay, those of one whose time ran out go', async () => {
  const { ctx, clock } = pds
  const rev = revAt(clock.now())
  const page = () => ({ nodes: [], records: [] })
  const counts = () => pds.count('repo', { did: null })
  const building = stageRepo(ctx, rev, async (id) => {
    for (let part = 0; part < 3; part++) {
      clock.advance({ secs: 600 })
      await pds.runSweep('abandoned-repos')
      await stageBlocks(ctx, id, rev, page())
    }
    expect(await counts()).toBe(1)
    clock.advance({ secs: 1000 })
    await pds.runSweep('abandoned-repos')
    expect(await counts()).toBe(0)
    await stageBlocks(ctx, id, rev, page())
  })
  expect(await thrownBy(building)).toThrow('The import took too long')
})

function archivesArriving({ dataDir }: TestPds): number {
  const folders = [dataDir, join(dataDir, OTHER_NODE)]
  return readdirSync('/proc/self/fd').filter((fd) => {
    try {
      return folders.includes(readlinkSync(`/proc/self/fd/${fd}`).replace(/\/\.[^/]*$/, ''))
    } catch {
      return false
    }
  }).length
}

test('a commit must be signed by the key of the DID, unless that has become ours', async () => {
  const frank = await createAccount(pds, 'frank')
  const directory = pds.ctx.plc
  const last = (await directory.lastOperation(frank.did as Did))!
  const verificationMethods = { atproto: formatDidKey(foreignKey.publicKey) }
  await directory.submit(
    frank.did as Did,
    signOperation(nextOperation(last, { verificationMethods })!, await serverRotationKey(pds.ctx)),
  )

  const forged = archiveOf(
    frank.did,
    revAt(pds.clock.now()),
    records(2),
    signingKey('k256', new Uint8Array(32).fill(3)),
  )
  expect(await importCar(frank, asBody(forged.bytes))).toMatchObject({
    status: 400,
    body: { message: 'The commit is not signed by the key of the DID document' },
  })
  const signed = archiveOf(frank.did, revAt(pds.clock.now()), records(2), foreignKey)
  expect((await importCar(frank, asBody(signed.bytes))).status).toBe(200)
  expect(await verified(frank)).toHaveLength(2)
})

test('only the whole account may import, into itself, what is announced as an archive', async () => {
  const [grace, heidi] = [await createAccount(pds, 'grace'), await createAccount(pds, 'heidi')]
  const { bytes } = archiveOf(grace.did, revAt(pds.clock.now()), records(2), foreignKey)
  expect(await importCar(heidi, asBody(bytes))).toMatchObject({ status: 403, body: { error: 'Forbidden' } })
  expect(await importCar(grace, asBody(bytes), { authorization: '' })).toMatchObject({ status: 401 })
  expect(await importCar(grace, asBody(bytes), { 'content-type': 'application/json' })).toMatchObject({ status: 400 })
  expect(
    await importCar(
      grace,
      asBody(archiveOf(grace.did, revAt(pds.clock.now() + 3_600_000), records(2), foreignKey).bytes),
    ),
  ).toMatchObject({ status: 400, body: { message: 'The revision of the commit is in the future' } })
  await pds.damage('account', { did: grace.did }, { takedown_ref: 'x' })
  expect(await importCar(grace, asBody(bytes))).toMatchObject({ status: 401, body: { error: 'AccountTakedown' } })
})

test('an operator bounds the size of imports, or closes them', async () => {
  const account = await createAccount(pds, 'ivan')
  const { bytes } = archiveOf(account.did, revAt(pds.clock.now()), records(200), foreignKey)
  await pds.restart({ repos: { maxImportSize: 1000 } })
  expect(await importCar(account, asBody(bytes))).toMatchObject({ status: 413 })
  expect(await importCar(account, new Response(asBody(bytes)).body!)).toMatchObject({ status: 413 })
  await pds.restart({ repos: { importsEnabled: false } })
  expect(await importCar(account, asBody(bytes))).toMatchObject({
    status: 400,
    body: { message: 'Service is not accepting repo imports' },
  })
  await pds.restart()
  expect((await importCar(account, asBody(bytes))).status).toBe(200)
})

test('of very many imported records about one subject, a new one replaces a hundred', async () => {
  const author = await createAccount(pds, 'repeats')
  const follow = { $type: 'app.bsky.graph.follow', subject: author.did, createdAt: '2026-01-02T03:04:05.678Z' }
  const same = Object.fromEntries(
    Array.from({ length: 250 }, (_, i) => [`app.bsky.graph.follow/${String(i).padStart(6, '0')}`, follow]),
  )
  const rev = revAt(pds.clock.now())
  expect(
    (await importCar(author, asBody(archiveOf(author.did, rev, { ...same, ...records(3) }, foreignKey).bytes))).status,
  ).toBe(200)
  const follows = async () =>
    (await verifiedPaths(author)).filter((path) => path.startsWith('app.bsky.graph.follow/')).length
  for (const left of [151, 52, 1, 1]) {
    const { status } = await author.call('com.atproto.repo.createRecord', {
      json: { repo: author.did, collection: 'app.bsky.graph.follow', record: follow },
    })
    expect(status).toBe(200)
    expect(await follows()).toBe(left)
  }
  expect((await state(author)).texts).toHaveLength(3)
})

test('of an account with any number of collections, a description lists the first of them', async () => {
  const account = await createAccount(pds, 'collector')
  const names = Array.from({ length: 2100 }, (_, i) => `org.example.c${String(i).padStart(5, '0')}`)
  const made = Object.fromEntries(names.map((name) => [`${name}/1`, { $type: name }]))
  const archive = archiveOf(account.did, revAt(pds.clock.now()), made, foreignKey)
  expect((await importCar(account, asBody(archive.bytes))).status).toBe(200)
  const { body } = await account.call(`com.atproto.repo.describeRepo?repo=${account.did}`)
  expect(body.collections).toEqual(names.slice(0, 2000))
})

test('a repository that refers to more blobs than its import could store at once is refused', async () => {
  const account = await createAccount(pds, 'referring')
  const list = Array.from({ length: 9000 }, (_, i) => ({
    $type: 'blob',
    ref: cidOfBlob(Buffer.from(String(i))),
    mimeType: 'image/png',
    size: 1,
  }))
  const album = { $type: 'org.example.album', list }
  const referring = (times: number) =>
    asBody(
      archiveOf(
        account.did,
        revAt(pds.clock.now()),
        Object.fromEntries(Array.from({ length: times }, (_, i) => [`org.example.album/${i}`, album])),
        foreignKey,
      ).bytes,
    )
  expect(await importCar(account, referring(60))).toMatchObject({ status: 413, body: { error: 'PayloadTooLarge' } })
  expect((await importCar(account, referring(2))).status).toBe(200)
  const { body } = await account.call('com.atproto.server.checkAccountStatus')
  expect(body).toMatchObject({ indexedRecords: 2, expectedBlobs: 9000, importedBlobs: 0 })
  expect(await abandonedRows()).toBe(0)
})
