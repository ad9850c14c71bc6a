/** Everything of an account in one file: what is in it, who gets it, and what becomes of it if something is missing. */
import { createHash } from 'node:crypto'
import { afterEach, beforeAll, expect, test } from 'bun:test'
import { verifyRepoCar } from '@atproto/repo'
import { createAccount, logIn, type TestAccount } from '../../support/clients/account.ts'
import { basic, bearer, request } from '../../support/clients/http.ts'
import { hiddenFields } from '../../support/clients/oauth-client.ts'
import { roleHolder } from '../../support/clients/role-holder.ts'
import { png, randomBytes, Uploader, type Blob } from '../../support/clients/uploader.ts'
import { CookieBrowser } from '../../support/clients/wallet-sign-in.ts'
import { SlowDownload } from '../../support/faults/slow-download.ts'
import { ADMIN_TOKEN } from '../../support/servers/pds.ts'
import { setUp } from '../../support/set-up.ts'
import { Stored } from '../../support/stored-blobs.ts'
import { eventLoopTurns, until } from '../../support/until.ts'
import { useWorld } from '../../support/world.ts'
import { archiveIn } from '../../support/zip-reading.ts'
import { atOneNode } from '../../support/turns.ts'

const PATH = '/v1/account/archive'
const AGENT = 'Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0'
/** More than the system keeps for a client that does not read. */
const LARGE_BYTES = 12 * 1024 ** 2

const { pds } = useWorld({ config: { rateLimit: { enabled: false } } })
const alice = setUp(() => createAccount(pds, 'alice'))
const bob = setUp(() => createAccount(pds, 'bob'))
let picture: Blob
beforeAll(async () => {
  const uploader = Uploader.at(pds, alice.did as Uploader['did'], alice.accessJwt)
  picture = await uploader.upload(png, 'image/png')
  await write('app.bsky.feed.post', {
    text: '=HYPERLINK("https://evil.test", "a"),\nand more',
    langs: ['en', 'de'],
    createdAt: '2026-05-01T12:00:00Z',
    embed: { $type: 'app.bsky.embed.images', images: [{ alt: '', image: picture }] },
  })
  await write('app.bsky.graph.follow', { subject: bob.did, createdAt: '2026-05-02T12:00:00Z' })
  await alice.call('app.bsky.actor.putPreferences', {
    json: { preferences: [{ $type: 'app.bsky.actor.defs#adultContentPref', enabled: false }] },
  })
  await alice.call('com.atproto.server.createAppPassword', { json: { name: 'a phone' } })
})

async function write(collection: string, record: Record<string, unknown>): Promise<string> {
  const { status, body } = await alice.call('com.atproto.repo.createRecord', {
    json: { repo: alice.did, collection, record: { $type: collection, ...record } },
  })
  expect({ status, body }).toMatchObject({ status: 200 })
  return body.uri
}

async function archiveOf(token: string, path = PATH): Promise<{ headers: Headers; files: Map<string, Buffer> }> {
  const response = await fetch(pds.url + path, { headers: bearer(token) })
  expect(response.status).toBe(200)
  return { headers: response.headers, files: await archiveIn(await response.bytes()).contents() }
}

const json = (files: Map<string, Buffer>, name: string) => JSON.parse(files.get(name)!.toString())

const text = (files: Map<string, Buffer>, name: string) => files.get(name)!.toString('utf8')

test('the archive has the repository, the blobs, the preferences, the names of app passwords, and tables', async () => {
  const { headers, files } = await archiveOf(alice.accessJwt)
  expect(headers.get('content-type')).toBe('application/zip')
  expect(headers.get('content-disposition')).toMatch(/^attachment; filename="alice\.test-\d{4}-\d\d-\d\d\.zip"$/)
  expect(headers.get('cache-control')).toBe('private')

  const [row] = await pds.rows('account', { did: alice.did }, ['signing_key'])
  const { creates } = await verifyRepoCar(files.get('repo.car')!, alice.did, row!.signing_key)
  expect(creates.map(({ collection }) => collection).toSorted()).toEqual([
    'app.bsky.feed.post',
    'app.bsky.graph.follow',
  ])
  const blob = `blobs/${picture.ref.$link}.png`
  expect(new Uint8Array(files.get(blob)!)).toEqual(png)
  expect(json(files, 'preferences.json')).toEqual({
    preferences: [{ $type: 'app.bsky.actor.defs#adultContentPref', enabled: false }],
  })
  expect(json(files, 'account.json')).toMatchObject({
    did: alice.did,
    handle: 'alice.test',
    email: alice.email,
    appPasswords: [{ name: 'a phone', privileged: false }],
  })
  expect(text(files, 'tables/follows.csv')).toMatch(
    new RegExp(
      `^\uFEFFuri,createdAt,did\r\nat://${alice.did}/app\\.bsky\\.graph\\.follow/\\w+,2026-05-02T12:00:00Z,${bob.did}\r\n$`,
    ),
  )
  expect(text(files, 'blobs.csv')).toContain(
    `${blob},${picture.ref.$link},${createHash('sha256').update(png).digest('hex')},${png.length},image/png,included\r\n`,
  )
})

test('a text that a spreadsheet would run is only text', async () => {
  const { files } = await archiveOf(alice.accessJwt)
  expect(text(files, 'tables/posts.csv')).toContain(
    `,"'=HYPERLINK(""https://evil.test"", ""a""),\nand more",en de,,,${picture.ref.$link}\r\n`,
  )
})

test('the manifest names every other file with its size and SHA-256, and the revision of the repository', async () => {
  const { files } = await archiveOf(alice.accessJwt)
  const manifest = json(files, 'manifest.json')
  const { body: latest } = await request(`${pds.url}/xrpc/com.atproto.sync.getLatestCommit?did=${alice.did}`)
  expect(manifest).toMatchObject({
    format: 'holdfast-account-archive',
    version: 1,
    did: alice.did,
    repo: { rev: latest.rev, head: latest.cid },
    blobs: { included: 1, missing: 0, bytes: png.length, list: 'blobs.csv' },
  })
  const listed = (manifest.files as { name: string; bytes: number; sha256: string }[]).map((file) => [
    file.name,
    file.bytes,
    file.sha256,
  ])
  const present = [...files]
    .filter(([name]) => name !== 'manifest.json' && !name.startsWith('blobs/'))
    .map(([name, bytes]) => [name, bytes.length, createHash('sha256').update(bytes).digest('hex')])
  expect(listed.toSorted()).toEqual(present.toSorted())
})

test('a blob that is lost, or was taken down, is listed as such, and all others are there', async () => {
  const uploader = Uploader.at(pds, bob.did as Uploader['did'], bob.accessJwt)
  const [lost, hidden, kept] = [
    await uploader.upload(randomBytes(1000)),
    await uploader.upload(randomBytes(1000)),
    await uploader.upload(randomBytes(1000)),
  ]
  await uploader.refer('org.example.album/self', lost, hidden, kept)
  const { $link: lostCid } = lost.ref
  new Stored(pds).delete(lostCid)
  await request(`${pds.url}/xrpc/com.atproto.admin.updateSubjectStatus`, {
    headers: basic('admin', ADMIN_TOKEN),
    json: {
      subject: { $type: 'com.atproto.admin.defs#repoBlobRef', did: bob.did, cid: hidden.ref.$link },
      takedown: { applied: true },
    },
  })
  const { files } = await archiveOf(bob.accessJwt)
  expect([...files.keys()].filter((name) => name.startsWith('blobs/'))).toEqual([`blobs/${kept.ref.$link}`])
  expect(json(files, 'manifest.json').blobs).toMatchObject({ included: 1, missing: 2 })
  const list = text(files, 'blobs.csv')
  expect(list).toMatch(new RegExp(`^,${lostCid},.*,missing\r$`, 'm'))
  expect(list).toMatch(new RegExp(`^,${hidden.ref.$link},.*,taken down\r$`, 'm'))
})

test('app passwords do not suffice, and a taken-down account can still be taken along', async () => {
  const { body: made } = await bob.call('com.atproto.server.createAppPassword', { json: { name: 'an app' } })
  const app = await logIn(pds, bob, made.password)
  expect(await request(pds.url + PATH, { headers: bearer(app.accessJwt) })).toMatchObject({
    status: 401,
    body: { error: { code: 'INVALID_TOKEN' } },
  })
  const takedown = (applied: boolean) =>
    request(`${pds.url}/xrpc/com.atproto.admin.updateSubjectStatus`, {
      headers: basic('admin', ADMIN_TOKEN),
      json: { subject: { $type: 'com.atproto.admin.defs#repoRef', did: bob.did }, takedown: { applied } },
    })
  await takedown(true)
  const held = await logIn(pds, bob, bob.password, { allowTakendown: true })
  expect((await archiveOf(held.accessJwt)).files.has('repo.car')).toBe(true)
  await takedown(false)
})

test('an operator gets the archive of any account, and the audit log says so', async () => {
  const { files } = await archiveOf(ADMIN_TOKEN, `/v1/admin/accounts/${alice.did}/archive`)
  expect(json(files, 'manifest.json').did).toBe(alice.did)
  const { body } = await request(`${pds.url}/v1/admin/audit?action=account_exported`, { headers: bearer(ADMIN_TOKEN) })
  expect(body.events).toMatchObject([{ actor: 'master-token', subject: alice.did }])
  const unknown = await request(`${pds.url}/v1/admin/accounts/did:web:nobody.test/archive`, {
    headers: bearer(ADMIN_TOKEN),
  })
  expect(unknown).toMatchObject({ status: 404 })
})

const downloads: SlowDownload[] = []
afterEach(async () => {
  await Promise.all(downloads.splice(0).map((download) => download.leave()))
  await until(async () => (await archives()).every((count) => count === 0))
})

/** Returns how many archives have a place, and how many wait for their clients alone. */
async function archives(): Promise<[number, number]> {
  const { body } = await request(`${pds.url}/metrics`)
  const of = (state: string) => Number(new RegExp(`^account_archives_${state} (\\d+)$`, 'm').exec(body)![1])
  return [of('running'), of('straggling')]
}

test('an archive that a slow client is still taking ends with the session that asked for it', async () => {
  using _ = atOneNode(pds, 'each node counts for itself')
  const dave = await createAccount(pds, 'dave')
  const uploader = Uploader.at(pds, dave.did as Uploader['did'], dave.accessJwt)
  await uploader.refer('org.example.album/self', await uploader.upload(randomBytes(LARGE_BYTES)))
  const thief = await logIn(pds, dave, dave.password)
  const [stolen, own] = [thief.accessJwt, dave.accessJwt].map((token, i) => {
    const download = new SlowDownload(pds.url, PATH, `203.0.113.${i}`, bearer(token))
    downloads.push(download)
    return download
  })
  await until(async () => (await archives()).toString() === '0,2')
  const ended = await request(`${pds.url}/xrpc/com.atproto.server.deleteSession`, {
    method: 'POST',
    headers: bearer(thief.refreshJwt),
  })
  expect(ended.status).toBe(200)
  pds.clock.advance({ secs: 2 })
  const { body, isWhole } = await stolen!.read()
  expect(isWhole).toBe(false)
  expect(body.length).toBeLessThan(LARGE_BYTES)
  expect((await own!.read()).isWhole).toBe(true)
})

test('an archive whose session ends while it waits for a place is not made, and nobody is told of one', async () => {
  using _ = atOneNode(pds, 'each node counts for itself')
  const [frank, gina] = [await createAccount(pds, 'frank'), await createAccount(pds, 'gina')]
  const uploader = Uploader.at(pds, gina.did as Uploader['did'], gina.accessJwt)
  await uploader.refer('org.example.album/self', await uploader.upload(randomBytes(LARGE_BYTES)))
  const thief = await logIn(pds, frank, frank.password)
  const crowd = Array.from(
    { length: 20 },
    (_, i) => new SlowDownload(pds.url, PATH, `198.51.100.${i}`, bearer(gina.accessJwt)),
  )
  await until(async () => (await archives())[0] === 4)
  const last = new SlowDownload(pds.url, PATH, '198.51.100.250', bearer(thief.accessJwt))
  downloads.push(...crowd, last)
  await eventLoopTurns(50)
  const ended = await request(`${pds.url}/xrpc/com.atproto.server.deleteSession`, {
    method: 'POST',
    headers: bearer(thief.refreshJwt),
  })
  expect([ended.status, last.status]).toEqual([200, null])
  await Promise.all(crowd.map((one) => one.leave()))
  expect((await last.read()).status).toBe(401)
  expect(await pds.count('account_event', { did: frank.did, event: 'exported' })).toBe(0)
})

test('a client that reads nothing keeps nobody else waiting, gets all of it later, and leaves nothing behind', async () => {
  using _ = atOneNode(pds, 'each node counts for itself')
  const carol = await createAccount(pds, 'carol')
  const uploader = Uploader.at(pds, carol.did as Uploader['did'], carol.accessJwt)
  const large = await uploader.upload(randomBytes(LARGE_BYTES))
  await uploader.refer('org.example.album/self', large)
  const slow = Array.from({ length: 6 }, (_, i) => {
    const download = new SlowDownload(pds.url, PATH, `198.51.100.${i}`, bearer(carol.accessJwt))
    downloads.push(download)
    return download
  })
  await until(async () => (await archives()).toString() === '0,6')
  expect((await archiveOf(alice.accessJwt)).files.has('manifest.json')).toBe(true)
  const { status, body, isWhole } = await slow[0]!.read()
  expect([status, isWhole]).toEqual([200, true])
  const files = await archiveIn(body).contents()
  expect(files.get(`blobs/${large.ref.$link}`)!.length).toBe(LARGE_BYTES)
  await Promise.all(downloads.splice(0).map((download) => download.leave()))
  await until(async () => (await archives()).toString() === '0,0')
})

test('a slow download from the account page, or of an operator, goes on until the session is ended, not unused', async () => {
  using _ = atOneNode(pds, 'each node counts for itself')
  const erin = await roleHolder(pds, 'erin', 'owner')
  const uploader = Uploader.at(pds, erin.did as Uploader['did'], erin.accessJwt)
  await uploader.refer('org.example.album/self', await uploader.upload(randomBytes(LARGE_BYTES)))
  const [left, kept] = [await browserOf(erin), await browserOf(erin)]
  const takeAll = ({ browser, form }: typeof kept, address: string) =>
    new SlowDownload(pds.url, '/account/archive', address, { cookie: browser.cookie, 'user-agent': AGENT }, form)
  const operating = `/v1/admin/accounts/${erin.did}/archive`
  downloads.push(
    takeAll(left, '203.0.113.1'),
    takeAll(kept, '203.0.114.1'),
    new SlowDownload(pds.url, operating, '203.0.115.1', bearer(erin.token)),
  )
  await until(async () => (await archives()).toString() === '0,3')
  expect((await left.browser.send('/account/sign-out', left.form)).status).toBe(303)
  pds.clock.advance({ secs: 5 * 3600 })
  await pds.runSweep('admin-nonce-sweep')
  expect((await erin.operate('/v1/admin/operators')).status).toBe(401)
  const [ended, ...others] = await Promise.all(downloads.map((download) => download.read()))
  expect(ended).toMatchObject({ status: 200, isWhole: false })
  expect(others).toMatchObject([
    { status: 200, isWhole: true },
    { status: 200, isWhole: true },
  ])
})

async function browserOf({ did, handle, password }: TestAccount) {
  const browser = new CookieBrowser(pds, AGENT)
  await browser.send('/account/sign-in', { identifier: handle, password })
  const { form_token = '' } = hiddenFields((await browser.open('/account')).body)
  return { browser, form: { account: did, form_token } }
}
