/** App passwords with scopes of their own and an end. */
import { expect, test } from 'bun:test'
import { sql } from '../../../src/platform/database/database.ts'
import { createAccount, logIn, xrpc, type TestAccount } from '../../support/clients/account.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { leastCost } from '../../support/least-cost.ts'
import { setUp } from '../../support/set-up.ts'
import { atOneNode } from '../../support/turns.ts'
import { useWorld } from '../../support/world.ts'

const { pds, appview } = useWorld({ appview: true, config: { rateLimit: { enabled: false } } })
const alice = setUp(() => createAccount(pds, 'alice'))

const POST = 'app.bsky.feed.post'
const DAY_SECS = 24 * 3600
const LATER = 1000 * DAY_SECS

let names = 0
const own = (path: string, json?: object) =>
  request(`${pds.url}${path}`, {
    headers: bearer(alice.accessJwt),
    ...(json !== undefined && { json }),
  })
const make = async (input: object) => {
  const { status, body } = await own('/v1/app-passwords', { name: `limited ${++names}`, ...input })
  expect({ status, body }).toMatchObject({ status: 200 })
  return body as { name: string; password: string; scope: string; expiresAt?: string }
}
const openWith = async (input: object) => logIn(pds, alice, (await make(input)).password)
const refresh = (session: TestAccount) =>
  xrpc(pds, 'com.atproto.server.refreshSession', { method: 'POST', headers: bearer(session.refreshJwt) })
const claims = (jwt: string) => JSON.parse(Buffer.from(jwt.split('.')[1]!, 'base64url').toString())
const inSecs = (secs: number) => new Date(pds.clock.now() + secs * 1000).toISOString()

const write = (session: TestAccount, collection = POST) =>
  session.call('com.atproto.repo.createRecord', {
    json: {
      repo: session.did,
      collection,
      record: { $type: collection, text: 'hello', createdAt: '2026-01-01T00:00:00.000Z' },
    },
  })
const upload = (session: TestAccount, type: string) =>
  session.call('com.atproto.repo.uploadBlob', {
    method: 'POST',
    body: `${++names}`,
    headers: { 'content-type': type },
  })
const ended = { status: 400, body: { error: 'ExpiredToken' } }
const outside = { status: 403, body: { error: 'ScopeMissingError' } }

test('the preset for posts creates posts, and nothing else', async () => {
  const session = await openWith({ presets: ['post'] })
  const made = await write(session)
  expect(made.status).toBe(200)
  const rkey = made.body.uri.split('/').at(-1)
  const others = [
    write(session, 'app.bsky.feed.repost'),
    session.call('com.atproto.repo.deleteRecord', { json: { repo: session.did, collection: POST, rkey } }),
    session.call('com.atproto.repo.applyWrites', {
      json: { repo: session.did, writes: [{ $type: 'com.atproto.repo.applyWrites#delete', collection: POST, rkey }] },
    }),
    upload(session, 'image/png'),
    session.call('app.bsky.feed.getTimeline'),
    session.call('app.bsky.actor.getPreferences'),
  ]
  for (const other of others) expect(await other).toMatchObject(outside)
})

test('the preset for reading reads what the account sees, and changes nothing', async () => {
  const session = await openWith({ presets: ['read'] })
  const asked = appview.received.length
  expect((await session.call('app.bsky.feed.getTimeline')).status).toBe(200)
  expect((await session.call('app.bsky.notification.listNotifications')).status).toBe(200)
  expect((await session.call('app.bsky.actor.getPreferences')).status).toBe(200)
  expect(appview.received.length).toBe(asked + 2)
  const others = [
    write(session),
    upload(session, 'image/png'),
    session.call('app.bsky.actor.putPreferences', { json: { preferences: [] } }),
    session.call('app.bsky.graph.muteActor', { json: { actor: session.did } }),
    session.call('chat.bsky.convo.listConvos', { headers: { 'atproto-proxy': 'did:web:api.bsky.chat#bsky_chat' } }),
  ]
  for (const other of others) expect(await other).toMatchObject(outside)
  expect(appview.received.length).toBe(asked + 2)
})

test('the preset for images uploads images, and combines with others', async () => {
  const images = await openWith({ presets: ['upload-images'] })
  expect((await upload(images, 'image/png')).status).toBe(200)
  expect(await upload(images, 'video/mp4')).toMatchObject(outside)
  expect(await write(images)).toMatchObject(outside)
  const both = await openWith({ presets: ['post', 'upload-images'] })
  expect((await upload(both, 'image/png')).status).toBe(200)
  expect((await write(both)).status).toBe(200)
})

test('scopes of OAuth limit an app password as they limit an app', async () => {
  const session = await openWith({ scope: `repo:${POST}?action=create&action=delete transition:email` })
  expect((await session.call('com.atproto.server.getSession')).body).toMatchObject({ email: alice.email })
  const { body } = await write(session)
  const rkey = body.uri.split('/').at(-1)
  const removed = await session.call('com.atproto.repo.deleteRecord', {
    json: { repo: session.did, collection: POST, rkey },
  })
  expect(removed.status).toBe(200)
  const without = await openWith({ presets: ['post'] })
  expect((await without.call('com.atproto.server.getSession')).body.email).toBeUndefined()
})

test('opening and extending a session tells the email address only with that scope', async () => {
  const answersOf = async (input: object) => {
    const { password } = await make(input)
    const opened = await xrpc(pds, 'com.atproto.server.createSession', {
      json: { identifier: alice.handle, password },
    })
    const extended = await xrpc(pds, 'com.atproto.server.refreshSession', {
      method: 'POST',
      headers: bearer(opened.body.refreshJwt),
    })
    return [opened.body, extended.body]
  }
  for (const body of await answersOf({ presets: ['post'] })) {
    expect(body).toMatchObject({ did: alice.did, active: true })
    for (const member of ['email', 'emailConfirmed', 'emailAuthFactor']) expect(body[member]).toBeUndefined()
  }
  for (const body of await answersOf({ scope: 'transition:email' })) expect(body.email).toBe(alice.email)
})

test('without scopes it may do what apps do, but no direct messages and no service token for all methods', async () => {
  const made = await make({})
  expect(made.scope).toBe('atproto transition:generic')
  const session = await logIn(pds, alice, made.password)
  expect((await write(session)).status).toBe(200)
  const aud = encodeURIComponent('did:web:api.bsky.chat#bsky_chat')
  const token = (more: string) => session.call(`com.atproto.server.getServiceAuth?aud=${aud}${more}`)
  expect(await token('')).toMatchObject({ status: 400, body: { error: 'InvalidRequest' } })
  expect(await token('&lxm=chat.bsky.convo.listConvos')).toMatchObject(outside)
  expect(await token('&lxm=com.atproto.server.createAccount')).toMatchObject({ status: 400 })
  expect(await token('&lxm=app.bsky.feed.getTimeline')).toMatchObject({ status: 200 })
})

test('what only the account itself may do is in no app password', async () => {
  const bad = [
    { scope: 'identity:*' },
    { scope: 'identity:handle' },
    { scope: 'account:email?action=manage' },
    { scope: 'account:repo?action=manage' },
    { scope: 'include:app.bsky.authFullApp' },
    { scope: 'nonsense' },
    { scope: 'openid' },
    { scope: `repo:${'a'.repeat(9000)}` },
    { presets: ['everything'] },
    { presets: ['toString'] },
    { expiresAt: inSecs(0) },
    { expiresAt: 'tomorrow' },
    { expiresAt: '2030-01-31' },
    { name: ' ' },
  ]
  for (const input of bad) {
    const { status, body } = await own('/v1/app-passwords', { name: `bad ${++names}`, ...input })
    expect({ input, status, code: body.error?.code }).toEqual({ input, status: 400, code: 'InvalidRequest' })
  }
  const session = await openWith({})
  for (const nsid of ['com.atproto.server.createAppPassword', 'com.atproto.server.revokeAppPassword'])
    expect(await session.call(nsid, { json: { name: 'x' } })).toMatchObject({
      status: 400,
      body: { error: 'InvalidToken', message: 'Bad token scope' },
    })
  for (const path of ['/v1/app-passwords', '/v1/account/archive'])
    expect((await request(`${pds.url}${path}`, { headers: bearer(session.accessJwt) })).status).toBe(401)
})

test('a refresh widens nothing', async () => {
  const session = await openWith({ presets: ['post'] })
  const { body } = await refresh(session)
  expect(claims(body.accessJwt)).toMatchObject({
    scope: 'com.atproto.appPassScoped',
    grants: `atproto repo:${POST}?action=create`,
  })
  const renewed: TestAccount = { ...session, call: (nsid, init = {}) => callAs(body.accessJwt, nsid, init) }
  expect((await write(renewed)).status).toBe(200)
  expect(await upload(renewed, 'image/png')).toMatchObject(outside)
})

const callAs = (token: string, nsid: string, init: Parameters<typeof request>[1] = {}) =>
  request(`${pds.url}/xrpc/${nsid}`, { ...init, headers: { ...(init.headers as object), ...bearer(token) } })

test('an older server that gives the same name away again widens nothing', async () => {
  const { name, password } = await make({ presets: ['post'] })
  const session = await logIn(pds, alice, password)
  const createdAt = pds.clock.now() + 1000
  await pds.ctx.db.transaction((tx) =>
    tx.run(sql`
      INSERT INTO app_password (did, name, password_hash, privileged, personal_details, created_at)
      VALUES (${alice.did}, ${name}, 'another', 1, 1, ${createdAt})`),
  )
  const { body } = await refresh(session)
  expect(claims(body.accessJwt).scope).toBe('com.atproto.appPassScoped')
  await own('/v1/app-passwords/revoke', { name })
  expect((await own('/v1/app-passwords')).body.appPasswords.some((each: { name: string }) => each.name === name)).toBe(
    false,
  )
})

test('a request with it runs no statement more than one with an app password of the standard', async () => {
  const plain = await alice.call('com.atproto.server.createAppPassword', { json: { name: `plain ${++names}` } })
  const sessions = [await logIn(pds, alice, plain.body.password), await openWith({ presets: ['post'] })]
  using _ = atOneNode(pds, 'each node counts for itself')
  const least = (session: TestAccount) => leastCost(pds.ctx.db, () => session.call('com.atproto.server.getSession'))
  expect(await least(sessions[1]!)).toBeLessThanOrEqual(await least(sessions[0]!))
})

test('revoking it ends its sessions at once, by either endpoint', async () => {
  const revocations = [
    (name: string) => own('/v1/app-passwords/revoke', { name }),
    (name: string) => alice.call('com.atproto.server.revokeAppPassword', { json: { name } }),
  ]
  for (const revoke of revocations) {
    const { name, password } = await make({ presets: ['post'] })
    const session = await logIn(pds, alice, password)
    expect((await write(session)).status).toBe(200)
    expect((await revoke(name)).status).toBe(200)
    expect(await write(session)).toMatchObject(ended)
    expect(await refresh(session)).toMatchObject(ended)
    const again = await xrpc(pds, 'com.atproto.server.createSession', {
      json: { identifier: alice.handle, password },
    })
    expect(again).toMatchObject({ status: 401, body: { error: 'AuthenticationRequired' } })
  }
  expect(await own('/v1/app-passwords/revoke', { name: 'none' })).toMatchObject({ status: 404 })
})

test('at its end it opens nothing, and its sessions are over', async () => {
  const { password, expiresAt } = await make({ presets: ['post'], expiresAt: inSecs(1800) })
  const session = await logIn(pds, alice, password)
  const endSecs = Math.floor(Date.parse(expiresAt!) / 1000)
  expect(claims(session.accessJwt).exp).toBe(endSecs)
  expect(claims(session.refreshJwt).exp).toBe(endSecs)
  pds.clock.advance({ secs: 1700 })
  expect((await write(session)).status).toBe(200)
  pds.clock.advance({ secs: 101 })
  expect(await write(session)).toMatchObject(ended)
  expect(await refresh(session)).toMatchObject(ended)
  const again = await xrpc(pds, 'com.atproto.server.createSession', { json: { identifier: alice.handle, password } })
  expect(again).toMatchObject({ status: 401, body: { error: 'AuthenticationRequired' } })
})

test('a refresh before the end lasts no longer than the app password', async () => {
  const { password, expiresAt } = await make({ presets: ['post'], expiresAt: inSecs(3600) })
  const session = await logIn(pds, alice, password)
  pds.clock.advance({ secs: 1800 })
  const { body } = await refresh(session)
  expect(claims(body.accessJwt).exp).toBe(Math.floor(Date.parse(expiresAt!) / 1000))
  pds.clock.advance({ secs: 1801 })
  await pds.runSweep('expired-sessions')
  expect(await pds.count('session', { id: claims(session.accessJwt).sid })).toBe(0)
})

test('the standard list has it in the form of the lexicon, ours with its scopes, end and last use', async () => {
  const bob = await createAccount(pds, `bob${++names}`)
  const ask = (path: string, json?: object) =>
    request(`${pds.url}${path}`, { headers: bearer(bob.accessJwt), ...(json !== undefined && { json }) })
  const expiresAt = inSecs(LATER)
  const { body: made } = await ask('/v1/app-passwords', { name: 'bot', presets: ['post'], expiresAt })
  expect(made).toMatchObject({ name: 'bot', expiresAt, scope: `atproto repo:${POST}?action=create` })
  pds.clock.advance({ secs: 1 })
  await bob.call('com.atproto.server.createAppPassword', { json: { name: 'plain' } })
  const { body } = await bob.call('com.atproto.server.listAppPasswords')
  expect(body.passwords).toMatchObject([{ name: 'plain' }, { name: 'bot' }])
  expect(body.passwords[1]).toEqual({
    name: 'bot',
    createdAt: made.createdAt,
    privileged: false,
    personalDetails: false,
  })
  const listed = async () => (await ask('/v1/app-passwords')).body.appPasswords
  expect((await listed())[1]).toEqual({ name: 'bot', scope: made.scope, createdAt: made.createdAt, expiresAt })

  const taken = [
    ask('/v1/app-passwords', { name: 'plain' }),
    bob.call('com.atproto.server.createAppPassword', { json: { name: 'bot' } }),
  ]
  for (const answer of taken) expect((await answer).status).toBe(400)
  const lastUse = async () => Date.parse((await listed())[1].lastUsedAt)
  const before = pds.clock.now()
  const session = await logIn(pds, bob, made.password)
  const first = await lastUse()
  expect(first).toBeGreaterThanOrEqual(before)
  pds.clock.advance({ secs: 1800 })
  await logIn(pds, bob, made.password)
  expect(await lastUse()).toBe(first)
  pds.clock.advance({ secs: 1801 })
  await refresh(session)
  expect(await lastUse()).toBeGreaterThan(first)
})
