/** A whole server of the reference moves in: what its people and their apps find afterwards. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { createHmac } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runCommand } from '../../../src/cli.ts'
import { readAccessToken } from '../../../src/features/access/sessions/session-tokens.ts'
import { faultsOfRepo } from '../../../src/features/operations/integrity/repo-check.ts'
import { newSigningSecret, openSigningKey } from '../../../src/platform/secrets/signing-keys.ts'
import { logIn } from '../../support/clients/account.ts'
import { basic, bearer, request } from '../../support/clients/http.ts'
import { loopbackClientId, OAuthClient } from '../../support/clients/oauth-client.ts'
import { Subscriber } from '../../support/clients/subscriber.ts'
import { quietTerminal } from '../../support/clients/terminal.ts'
import { ADMIN_TOKEN, MASTER_KEY, startPds, type TestPds } from '../../support/servers/pds.ts'
import { startPlcServer, type PlcHost } from '../../support/servers/plc-server.ts'
import { deviceKey } from '../../support/clients/wallet.ts'
import { FORMER_PASSWORD, insert, LivedFolder, type LivedPerson } from '../../support/servers/reference-folder.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { thumbprint } from '../../../src/protocol/jwk.ts'

setDefaultTimeout(60_000)

const APP_PASSWORD = 'abcd-efgh-ijkl-mnop'
const SCOPE = 'atproto transition:generic'
const scratch = mkdtempSync(join(tmpdir(), 'holdfast-moving-'))
const png = new Uint8Array(5000).fill(3)
const hidden = new Uint8Array(700).fill(9)

let plc: PlcHost
let pds: TestPds
let folder: LivedFolder
let alice: LivedPerson
let dora: LivedPerson
let theo: LivedPerson
let mona: LivedPerson
let session: ReturnType<LivedFolder['openSession']>
let refreshed: { before: string; after: string }
let appToken: string
let app: OAuthClient
let cookies: string
let before: string
let output: string[]

/** Names, sizes and contents of all files. */
const imageOf = (path: string): string =>
  readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .toSorted()
    .map((file) => `${file} ${statSync(file).mtimeMs} ${Bun.hash(readFileSync(file))}`)
    .join('\n')

const envOf = () => ({
  SERVICE_DATA_DIR: pds.dataDir,
  SERVICE_DATABASE_URL: databaseUrl,
  SERVICE_PUBLIC_URL: pds.url,
  SERVICE_PORT: '1',
  SERVICE_LOG_LEVEL: 'error',
  SERVICE_SIGNING_KEY_MASTER_KEY: Buffer.from(MASTER_KEY.reveal()).toString('hex'),
})
let databaseUrl: string
async function move(words: string[] = []) {
  const lines: string[] = []
  const code = await runCommand(quietTerminal(envOf(), lines), ['import-reference', folder.path, ...words, '--dev'])
  return { code, lines }
}

beforeAll(async () => {
  plc = await startPlcServer()
  pds = await startPds({ plcDirectoryUrl: plc.url, blobs: { store: 'folder' }, signingKeyMasterKey: MASTER_KEY })
  databaseUrl = pds.ctx.config.databaseUrl
  folder = new LivedFolder(join(scratch, 'pds'), {
    url: pds.url,
    serverDid: pds.ctx.config.serverDid,
    domain: 'test',
  })
  alice = folder.add({
    name: 'alice',
    records: 40,
    blobs: [png],
    appPasswords: [APP_PASSWORD],
    furtherKeys: { atproto_space: deviceKey().did },
    furtherServices: { atproto_space_host: { type: 'AtprotoSpaceHost', endpoint: 'https://spaces.example.com' } },
    preferences: [{ $type: 'app.bsky.actor.defs#adultContentPref', enabled: true }],
  })
  dora = folder.add({
    name: 'dora',
    deactivatedAt: '2026-01-01T00:00:00.000Z',
    deleteAfter: '2026-01-04T00:00:00.000Z',
  })
  theo = folder.add({ name: 'theo', takedownRef: 'mod-7', blobs: [hidden], blobRoom: 'quarantine' })
  mona = folder.add({ name: 'mona', signer: openSigningKey('k256', newSigningSecret('k256')) })
  for (const { did, genesis } of [alice, mona])
    expect((await request(`${plc.url}/${did}`, { method: 'POST', json: genesis })).status).toBe(200)
  session = folder.openSession(alice.did)
  const successor = folder.openSession(alice.did)
  refreshed = { before: folder.openSession(alice.did, { nextId: successor.id }).refreshJwt, after: successor.id }
  app = new OAuthClient(pds, loopbackClientId(SCOPE))
  const jkt = thumbprint(app.key.jwk)!
  appToken = folder.openAppSession(alice.did, { clientId: app.clientId, jkt, scope: SCOPE })
  folder.openAppSession(alice.did, { clientId: app.clientId, jkt: null, scope: SCOPE })
  cookies = folder.signInBrowser(alice.did)
  folder.invite('old-code', { forAccount: alice.did, usedBy: mona.did })
  insert(folder.accounts, 'email_token', { purpose: 'reset_password', did: alice.did, token: 'x', requestedAt: '' })
  folder.close()
  await pds.stop()
  before = imageOf(folder.path)
  const { code, lines } = await move()
  output = lines
  expect([code, lines.slice(-3)]).toMatchObject([0, expect.anything()])
  await pds.restart()
})
afterAll(async () => {
  await pds[Symbol.asyncDispose]()
  await plc[Symbol.asyncDispose]()
  rmSync(scratch, { recursive: true })
})

const xrpc = (nsid: string, query: Record<string, string>) =>
  request(`${pds.url}/xrpc/${nsid}?${new URLSearchParams(query)}`)

test('the report says what comes along and what does not, with numbers', () => {
  const text = output.join('\n')
  expect(text).toContain('4, of which 1 are deactivated and 1 taken down')
  expect(text).toMatch(/records\s+49/)
  expect(text).toMatch(/sessions of apps\s+1\n/)
  expect(text).toMatch(/sessions of apps\s+1 without a refresh token or a key/)
  expect(text).toMatch(/mailed codes\s+1: people ask for new ones/)
  expect(text).toContain('4 accounts moved in with 49 records and 2 blobs')
})

test('the old folder is as it was', () => {
  expect(imageOf(folder.path)).toBe(before)
})

test('the running check finds nothing wrong with those who moved in', async () => {
  for (const { did } of [alice, dora, theo, mona]) expect(await faultsOfRepo(pds.ctx, did as Did)).toEqual([])
})

test('people sign in with the passwords that they had, and the old hash is replaced then', async () => {
  for (const _ of ['with the old hash', 'with ours']) await logIn(pds, alice, FORMER_PASSWORD)
  const wrong = await request(`${pds.url}/xrpc/com.atproto.server.createSession`, {
    json: { identifier: alice.handle, password: `${FORMER_PASSWORD}!` },
  })
  expect([wrong.status, wrong.body.error]).toEqual([401, 'AuthenticationRequired'])
})

test('an app password opens the sessions that it opened there', async () => {
  for (const _ of ['with the old hash', 'with ours']) {
    const signedIn = await logIn(pds, alice, APP_PASSWORD)
    const made = await signedIn.call('com.atproto.server.createAppPassword', { json: { name: 'another' } })
    expect(made.status).toBe(400)
  }
})

test('the key of the old server makes no access tokens, whatever they say', async () => {
  const { body } = await request(`${pds.url}/xrpc/com.atproto.server.createSession`, {
    json: { identifier: alice.handle, password: FORMER_PASSWORD },
  })
  const { sid } = JSON.parse(Buffer.from(body.accessJwt.split('.')[1], 'base64url').toString())
  const forged = folder.forgeAccess(alice.did, sid)
  expect(await readAccessToken(pds.ctx, forged)).toEqual({ ok: false, fault: 'expired' })
  const get = await request(`${pds.url}/xrpc/com.atproto.server.getSession`, { headers: bearer(forged) })
  expect([get.status, get.body.error]).toEqual([400, 'ExpiredToken'])
})

test('a session goes on: its access token has expired, and its refresh token is exchanged', async () => {
  const get = await request(`${pds.url}/xrpc/com.atproto.server.getSession`, { headers: bearer(session.accessJwt) })
  expect([get.status, get.body.error]).toEqual([400, 'ExpiredToken'])
  const exchange = (token: string) =>
    request(`${pds.url}/xrpc/com.atproto.server.refreshSession`, { method: 'POST', headers: bearer(token) })
  const first = await exchange(session.refreshJwt)
  expect([first.status, first.body.did, first.body.handle]).toEqual([200, alice.did, alice.handle])
  const again = await exchange(first.body.refreshJwt)
  expect(again.status).toBe(200)
  const own = await request(`${pds.url}/xrpc/com.atproto.server.getSession`, { headers: bearer(again.body.accessJwt) })
  expect([own.status, own.body.email]).toEqual([200, alice.email])
})

test('a refresh token that was exchanged there a moment ago gets the same successor here', async () => {
  const { status, body } = await request(`${pds.url}/xrpc/com.atproto.server.refreshSession`, {
    method: 'POST',
    headers: bearer(refreshed.before),
  })
  expect(status).toBe(200)
  const claims = JSON.parse(Buffer.from(body.refreshJwt.split('.')[1], 'base64url').toString())
  expect(claims.jti).toBe(refreshed.after)
  const own = await request(`${pds.url}/xrpc/com.atproto.server.getSession`, { headers: bearer(body.accessJwt) })
  expect(own.status).toBe(200)
})

test('an app goes on with the refresh token, the key and the scopes that it had', async () => {
  const exchange = (token: string) =>
    app.post('/oauth/token', { grant_type: 'refresh_token', refresh_token: token, client_id: app.clientId })
  const other = new OAuthClient(pds, app.clientId)
  const stolen = await other.post('/oauth/token', {
    grant_type: 'refresh_token',
    refresh_token: appToken,
    client_id: app.clientId,
  })
  expect([stolen.status, stolen.body.error]).toEqual([400, 'invalid_grant'])
  const first = await exchange(appToken)
  expect([first.status, first.body.sub, first.body.scope]).toEqual([200, alice.did, SCOPE])
  const again = await exchange(first.body.refresh_token)
  expect(again.status).toBe(200)
})

test('a browser is still signed in on the account page, with a cookie of ours from then on', async () => {
  const open = (cookie: string) => fetch(`${pds.url}/account`, { headers: { cookie }, redirect: 'manual' })
  const page = await open(cookies)
  expect(await page.text()).toContain(alice.handle)
  const [own] = page.headers.getSetCookie().map((cookie) => cookie.split(';', 1)[0]!)
  expect(own).toStartWith('holdfast=')
  expect(await (await open(`${cookies}; ${own}`)).text()).toContain(alice.handle)
  expect(await (await open(cookies)).text()).not.toContain(alice.handle)
})

test('cookies of the old server that another host has planted prove no form', async () => {
  const [device, session] = ['1', '2'].map((digit) => digit.repeat(32))
  const form_token = createHmac('sha256', Buffer.from(`${device}${session}`, 'hex'))
    .update('form')
    .digest('base64url')
  const sent = await fetch(`${pds.url}/account/sign-in`, {
    method: 'POST',
    headers: { cookie: `dev-id=dev-${device}; ses-id=ses-${session}`, origin: 'null' },
    body: new URLSearchParams({ identifier: alice.handle, password: FORMER_PASSWORD, form_token }),
    redirect: 'manual',
  })
  expect([sent.status, sent.headers.getSetCookie()]).toEqual([403, []])
})

test('repositories are the same: head, records with their revisions, blobs', async () => {
  const latest = await xrpc('com.atproto.sync.getLatestCommit', { did: alice.did })
  expect(latest.body).toEqual({ cid: alice.head, rev: alice.rev })
  const records = await xrpc('com.atproto.repo.listRecords', {
    repo: alice.did,
    collection: 'org.example.note',
    limit: '100',
  })
  expect(records.body.records).toHaveLength(40)
  const blob = await fetch(`${pds.url}/xrpc/com.atproto.sync.getBlob?did=${alice.did}&cid=${alice.blobs[0]}`)
  expect(await blob.bytes()).toEqual(png)
})

test('takedowns and deactivations stay, and a deletion that nobody carried out is put off', async () => {
  const status = async (did: string) => (await xrpc('com.atproto.sync.getRepoStatus', { did })).body
  expect(await status(dora.did)).toMatchObject({ active: false, status: 'deactivated' })
  expect(await status(theo.did)).toMatchObject({ active: false, status: 'takendown' })
  await pds.runSweep('account-reaper')
  expect(await status(dora.did)).toMatchObject({ active: false, status: 'deactivated' })
  const blob = await request(
    `${pds.url}/xrpc/com.atproto.admin.getSubjectStatus?did=${theo.did}&blob=${theo.blobs[0]}`,
    { headers: basic('admin', ADMIN_TOKEN) },
  )
  expect(blob.body.takedown).toEqual({ applied: true, ref: 'removed' })
})

test('preferences and invites come along', async () => {
  const signedIn = await logIn(pds, alice, FORMER_PASSWORD)
  const preferences = await signedIn.call('app.bsky.actor.getPreferences')
  expect(preferences.body.preferences).toEqual([{ $type: 'app.bsky.actor.defs#adultContentPref', enabled: true }])
  const invites = await signedIn.call('com.atproto.server.getAccountInviteCodes')
  expect(invites.body.codes).toMatchObject([{ code: 'old-code', available: 2, uses: [{ usedBy: mona.did }] }])
})

test('subscribers follow on: events of the last day are here under their numbers, and new ones come after them', async () => {
  const reader = new Subscriber(pds.url, '?cursor=0')
  const signedIn = await logIn(pds, alice, FORMER_PASSWORD)
  const made = await signedIn.call('com.atproto.repo.createRecord', {
    json: { repo: alice.did, collection: 'org.example.note', record: { $type: 'org.example.note', text: 'from here' } },
  })
  expect(made.status).toBe(200)
  const messages = await reader.untilSeen((seen) => seen.some(({ type }) => type === '#commit'))
  reader.close()
  expect(messages.map(({ type, body }) => [type, body.seq])).toEqual([
    ['#sync', 1],
    ['#sync', 2],
    ['#sync', 3],
    ['#sync', 4],
    ['#sync', 5],
    ['#commit', 6],
  ])
  expect(messages.at(-1)!.body).toMatchObject({ repo: alice.did, since: alice.rev })
})

test('a repository that a server before the old one has signed is signed anew, and announced', async () => {
  const latest = await xrpc('com.atproto.sync.getLatestCommit', { did: mona.did })
  expect(latest.body.rev > mona.rev).toBe(true)
})

test('the old rotation key changes identities: a handle can be changed', async () => {
  const signedIn = await logIn(pds, alice, FORMER_PASSWORD)
  const changed = await signedIn.call('com.atproto.identity.updateHandle', { json: { handle: 'alicia.test' } })
  expect(changed.status).toBe(200)
  const document = (await request(`${plc.url}/${alice.did}`)).body
  expect(document.alsoKnownAs).toEqual(['at://alicia.test'])
  // What other services use of the identity stays.
  expect(document.verificationMethod.map(({ id }: { id: string }) => id)).toContain('#atproto_space')
  expect(document.service).toContainEqual(expect.objectContaining({ id: '#atproto_space_host' }))
})

test('a move that has ended is not repeated', async () => {
  await pds.stop()
  const { code, lines } = await move()
  expect([code, lines.join('\n')]).toEqual([1, expect.stringContaining('has already moved in')])
  await pds.restart()
})
