/** Blobs that records in spaces refer to: they stay with the records, and only a public record makes them public. */
import { beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { parseCid } from '../../../src/protocol/cid.ts'
import { signingKey } from '../../../src/protocol/keys.ts'
import { nextTid } from '../../../src/protocol/tid.ts'
import { archiveOf } from '../../support/archive.ts'
import { createAccount, type TestAccount } from '../../support/clients/account.ts'
import { basic, bearer, request, type Answer } from '../../support/clients/http.ts'
import { spaceApp, type SpaceApp } from '../../support/clients/space-app.ts'
import { ADMIN_TOKEN } from '../../support/servers/pds.ts'
import { useWorld } from '../../support/world.ts'

// A thousand files are uploaded.
setDefaultTimeout(60_000)

const TYPE = 'test.forum.space'
const NOTE = 'test.forum.note'
const { pds } = useWorld({ config: { spaces: { enabled: true }, rateLimit: { enabled: false } } })
let alice: TestAccount
let app: SpaceApp
beforeAll(async () => {
  alice = await createAccount(pds, 'alice')
  app = await spaceApp(pds, alice, 'space:*?authority=*&collection=*', 'blob:*/*', 'repo:*')
})

let files = 0
const placeOf = (key: string) => ({ space: `at://${alice.did}/space/${TYPE}/${key}`, repo: alice.did })
/** A new blob, to which nothing refers. */
async function upload() {
  const { body } = await app.call('com.atproto.repo.uploadBlob', {
    method: 'POST',
    headers: { 'content-type': 'text/plain' },
    body: Buffer.from(`file ${++files}`),
  })
  return { blob: body.blob, cid: body.blob.ref.$link as string, text: `file ${files}` }
}
const attach = (key: string, rkey: string, blob: object) =>
  app.post('createRecord', { ...placeOf(key), collection: NOTE, rkey, record: { blob } })
const detach = (key: string, rkey: string) => app.post('deleteRecord', { ...placeOf(key), collection: NOTE, rkey })
const inSpace = (key: string, cid: string) => app.get('getBlob', { ...placeOf(key), cid })
const inPublic = (cid: string, headers: Record<string, string> = {}) =>
  request(`${pds.url}/xrpc/com.atproto.sync.getBlob?did=${alice.did}&cid=${cid}`, { headers })
async function collect() {
  await pds.age('blob')
  await pds.runSweep('blob-gc')
}

test('a blob of a space is read there, as what it is and into no cache, and nowhere else', async () => {
  const { blob, cid, text } = await upload()
  expect((await attach('a', 'one', blob)).status).toBe(200)
  const { status, body, headers } = await inSpace('a', cid)
  expect([status, String(body)]).toEqual([200, text])
  expect(Object.fromEntries(headers)).toMatchObject({
    'cache-control': 'private, no-store',
    'content-security-policy': "default-src 'none'; sandbox",
    'content-disposition': `attachment; filename="${cid}"`,
    'x-content-type-options': 'nosniff',
  })
  const refused = [
    await inPublic(cid),
    await inPublic(cid, basic('admin', ADMIN_TOKEN)),
    await inPublic(cid, { range: 'bytes=0-1' }),
    await inPublic(cid, { 'if-none-match': `"${cid}"` }),
    await alice.call(`com.atproto.sync.getBlob?did=${alice.did}&cid=${cid}`),
    await app.call(`com.atproto.sync.getBlob?did=${alice.did}&cid=${cid}`),
    await inSpace('b', cid),
  ]
  expect(refused.map(({ status: of, body: answer }) => [of, answer.error])).toEqual(
    refused.map(() => [400, 'BlobNotFound']),
  )
  expect((await app.get('listBlobs', placeOf('a'))).body).toEqual({ cids: [cid] })
  expect((await app.get('listBlobs', placeOf('b'))).body).toEqual({ cids: [] })
  const { body: listed } = await request(`${pds.url}/xrpc/com.atproto.sync.listBlobs?did=${alice.did}`)
  expect(listed.cids).not.toContain(cid)
})

test('a blob stays while a record in any space refers to it, and has its grace when the last is gone', async () => {
  const { blob, cid } = await upload()
  for (const key of ['a', 'b']) await attach(key, 'kept', blob)
  await collect()
  await detach('a', 'kept')
  await collect()
  expect((await inSpace('b', cid)).status).toBe(200)
  expect((await inSpace('a', cid)).status).toBe(400)
  await detach('b', 'kept')
  await pds.runSweep('blob-gc')
  expect(await pds.count('blob', { cid })).toBe(1)
  await collect()
  expect(await pds.count('blob', { cid })).toBe(0)
})

test('a public record makes a blob public, and its deletion private again', async () => {
  const { blob, cid } = await upload()
  await attach('a', 'both', blob)
  const { repo } = placeOf('a')
  await app.post('com.atproto.repo.putRecord', { repo, collection: NOTE, rkey: 'both', record: { blob } })
  expect((await inPublic(cid)).status).toBe(200)
  await app.post('com.atproto.repo.deleteRecord', { repo, collection: NOTE, rkey: 'both' })
  expect((await inPublic(cid)).status).toBe(400)
  await collect()
  expect((await inSpace('a', cid)).status).toBe(200)
})

test('blobs of spaces alone are not counted among those of the public repository', async () => {
  const carol = await createAccount(pds, 'carol')
  const writer = await spaceApp(pds, carol, 'space:*?authority=*&collection=*', 'blob:*/*', 'repo:*')
  const [open, hidden] = await Promise.all(
    ['open', 'hidden'].map(async (text) => {
      const init = { method: 'POST', headers: { 'content-type': 'text/plain' }, body: text }
      return (await writer.call('com.atproto.repo.uploadBlob', init)).body.blob
    }),
  )
  const counts = async () => {
    const { body } = await carol.call('com.atproto.server.checkAccountStatus')
    return [body.expectedBlobs, body.importedBlobs]
  }
  expect(await counts()).toEqual([0, 2])
  const place = { space: `at://${carol.did}/space/${TYPE}/a`, repo: carol.did, collection: NOTE }
  await writer.post('createRecord', { ...place, rkey: 'hidden', record: { blob: hidden } })
  const inOpen = { repo: carol.did, collection: NOTE, rkey: 'open', record: { blob: open } }
  await writer.post('com.atproto.repo.putRecord', inOpen)
  expect(await counts()).toEqual([1, 1])
  await writer.post('com.atproto.repo.putRecord', { ...inOpen, rkey: 'both', record: { blob: hidden } })
  expect(await counts()).toEqual([2, 2])
})

test('another upload of its bytes leaves a blob the type that records in spaces have of it', async () => {
  const { blob, cid, text } = await upload()
  const again = (type: string) =>
    app.call('com.atproto.repo.uploadBlob', { method: 'POST', headers: { 'content-type': type }, body: text })
  const typeNow = async () => (await inSpace('a', cid)).headers.get('content-type')
  await again('application/json')
  expect(await attach('a', 'typed', blob)).toMatchObject({ status: 400, body: { error: 'InvalidMimeType' } })
  await again('text/plain')
  expect((await attach('a', 'typed', blob)).status).toBe(200)
  expect((await again('application/json')).status).toBe(200)
  expect(await typeNow()).toBe('text/plain')
  expect((await attach('b', 'typed', blob)).status).toBe(200)
})

test('a record in a space that goes takes nothing from a public one', async () => {
  const { blob, cid } = await upload()
  const { repo } = placeOf('a')
  await app.post('com.atproto.repo.putRecord', { repo, collection: NOTE, rkey: 'stays', record: { blob } })
  await attach('a', 'goes', blob)
  await detach('a', 'goes')
  await collect()
  expect((await inPublic(cid)).status).toBe(200)
})

test('a record refers to what the account has, as it is', async () => {
  const { blob, cid } = await upload()
  const missing = 'bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku'
  for (const [changed, error] of [
    [{ ...blob, ref: { $link: missing } }, 'BlobNotFound'],
    [{ ...blob, mimeType: 'image/png' }, 'InvalidMimeType'],
    [{ ...blob, size: 1 }, 'InvalidSize'],
  ] as const)
    expect(await attach('a', 'wrong', changed)).toMatchObject({ status: 400, body: { error } })
  const bob = await createAccount(pds, 'bob')
  const other = await spaceApp(pds, bob, 'space:*?authority=*&collection=*')
  const place = { ...placeOf('a'), repo: bob.did }
  const stolen = await other.post('createRecord', { ...place, collection: NOTE, rkey: 'x', record: { blob } })
  expect(stolen).toMatchObject({ status: 400, body: { error: 'BlobNotFound' } })
  expect(await other.get('getBlob', { ...place, cid })).toMatchObject({ body: { error: 'BlobNotFound' } })
})

test('who knows the CID of a blob in a space does not get it by an import of records that name it', async () => {
  const { blob, cid } = await upload()
  await attach('a', 'secret', blob)
  const open = await upload()
  const { repo } = placeOf('a')
  await app.post('com.atproto.repo.putRecord', { repo, collection: NOTE, rkey: 'open', record: { blob: open.blob } })
  const thief = await createAccount(pds, 'thief')
  const record = { $type: NOTE, files: [blob, open.blob].map((one) => ({ ...one, ref: parseCid(one.ref.$link)! })) }
  const key = signingKey('p256', new Uint8Array(32).fill(5))
  const { bytes } = archiveOf(thief.did, nextTid(null, pds.clock.now() * 1000, 1), { [`${NOTE}/x`]: record }, key)
  const imported = await thief.call('com.atproto.repo.importRepo', {
    method: 'POST',
    body: bytes as Uint8Array<ArrayBuffer>,
    headers: { 'content-type': 'application/vnd.ipld.car' },
  })
  expect(imported.status).toBe(200)
  await pds.runSweep('blob-gc')
  const theirs = (of: string) => request(`${pds.url}/xrpc/com.atproto.sync.getBlob?did=${thief.did}&cid=${of}`)
  expect([(await theirs(cid)).status, (await theirs(open.cid)).status]).toEqual([400, 200])
  expect((await thief.call('com.atproto.repo.listMissingBlobs')).body.blobs).toMatchObject([{ cid }])
})

test('a blob that is taken down is not readable in a space either', async () => {
  const { blob, cid } = await upload()
  await attach('a', 'bad', blob)
  const subject = { $type: 'com.atproto.admin.defs#repoBlobRef', did: alice.did, cid }
  const { status } = await request(`${pds.url}/xrpc/com.atproto.admin.updateSubjectStatus`, {
    json: { subject, takedown: { applied: true } },
    headers: basic('admin', ADMIN_TOKEN),
  })
  expect(status).toBe(200)
  expect(await inSpace('a', cid)).toMatchObject({ status: 400, body: { error: 'BlobNotFound' } })
})

test('moderators see a blob of a space once they have taken it down, and its owner on no page', async () => {
  const [hidden, open] = [await upload(), await upload()]
  await attach('a', 'seen', hidden.blob)
  const { repo } = placeOf('a')
  await app.post('com.atproto.repo.putRecord', { repo, collection: NOTE, rkey: 'seen', record: { blob: open.blob } })
  const seen = async ({ cid }: { cid: string }, by: 'operator' | 'owner') => {
    const path = by === 'owner' ? '/v1/account/data' : `/v1/admin/accounts/${repo}/data`
    const headers = bearer(by === 'owner' ? alice.accessJwt : ADMIN_TOKEN)
    const { body: listed } = await request(`${pds.url}${path}?part=blobs`, { headers })
    const { status } = await request(`${pds.url}${path}/blob?cid=${cid}`, { headers })
    return [listed.blobs.some((one: { cid: string }) => one.cid === cid), status]
  }
  for (const by of ['operator', 'owner'] as const)
    expect([by, await seen(hidden, by), await seen(open, by)]).toEqual([by, [false, 400], [true, 200]])
  const subject = { $type: 'com.atproto.admin.defs#repoBlobRef', did: repo, cid: hidden.cid }
  const { status } = await request(`${pds.url}/xrpc/com.atproto.admin.updateSubjectStatus`, {
    json: { subject, takedown: { applied: true } },
    headers: basic('admin', ADMIN_TOKEN),
  })
  expect(status).toBe(200)
  expect(await seen(hidden, 'operator')).toEqual([true, 200])
  expect((await seen(hidden, 'owner'))[1]).toBe(400)
})

test('a replaced record refers to its new blob alone, and blobs are listed since a revision', async () => {
  const [first, second] = [await upload(), await upload()]
  await attach('c', 'one', first.blob)
  const { body } = await app.get('getLatestCommit', placeOf('c'))
  await app.post('putRecord', { ...placeOf('c'), collection: NOTE, rkey: 'one', record: { blob: second.blob } })
  expect((await app.get('listBlobs', placeOf('c'))).body.cids).toEqual([second.cid])
  expect((await app.get('listBlobs', { ...placeOf('c'), since: body.commit.rev })).body.cids).toEqual([second.cid])
  const { body: now } = await app.get('getLatestCommit', placeOf('c'))
  expect((await app.get('listBlobs', { ...placeOf('c'), since: now.commit.rev })).body.cids).toEqual([])
})

test('pages of blobs meet, also where few are new among many', async () => {
  const uploads = await Promise.all(Array.from({ length: 7 }, upload))
  const inOrder = uploads.map(({ cid }) => cid).toSorted()
  const list = async (params: object) => {
    const pages: string[][] = []
    for (let cursor: string | undefined = ''; cursor !== undefined;) {
      const { body }: Answer = await app.get('listBlobs', { ...placeOf('e'), ...(cursor && { cursor }), ...params })
      pages.push(body.cids)
      cursor = body.cursor
    }
    return pages
  }
  // Each blob has two records, and each record of another space has one of them.
  for (const [i, { blob }] of uploads.entries())
    for (const [key, rkey] of [
      ['e', `a${i}`],
      ['e', `b${i}`],
      ['f', `a${i}`],
    ] as const)
      await attach(key, rkey, blob)
  expect(await list({ limit: 3 })).toEqual([inOrder.slice(0, 3), inOrder.slice(3, 6), inOrder.slice(6)])
  const { body } = await app.get('getLatestCommit', placeOf('e'))
  const since = body.commit.rev
  expect(await list({ limit: 3, since })).toEqual([[]])
  const other = uploads.find(({ cid }) => cid === inOrder[4])!
  await attach('e', 'c', other.blob)
  expect(await list({ limit: 3, since })).toEqual([[other.cid]])
  expect((await list({ limit: 1, since })).flat()).toEqual([other.cid])
})

test('a page of new blobs ends after a thousand that are old, and leads on', async () => {
  const uploads: Awaited<ReturnType<typeof upload>>[] = []
  while (uploads.length < 1010) uploads.push(...(await Promise.all(Array.from({ length: 101 }, upload))))
  const inOrder = uploads.toSorted((a, b) => (a.cid < b.cid ? -1 : 1))
  const last = inOrder.at(-1)!
  const attachAll = (rkey: string, some: typeof uploads) =>
    app.post('createRecord', {
      ...placeOf('g'),
      collection: NOTE,
      rkey,
      record: { blobs: some.map(({ blob }) => blob) },
    })
  expect((await attachAll('all', inOrder)).status).toBe(200)
  const { body } = await app.get('getLatestCommit', placeOf('g'))
  expect((await attachAll('new', [last])).status).toBe(200)
  const since = body.commit.rev
  const { body: first } = await app.get('listBlobs', { ...placeOf('g'), since })
  expect(first).toEqual({ cids: [], cursor: inOrder[999]!.cid })
  const { body: second } = await app.get('listBlobs', { ...placeOf('g'), since, cursor: first.cursor })
  expect(second).toEqual({ cids: [last.cid] })
})
