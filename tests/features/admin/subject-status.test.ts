import { beforeAll, beforeEach, expect, test } from 'bun:test'
import { formatServiceToken } from '../../../src/protocol/service-token.ts'
import { formatDidKey, signingKey } from '../../../src/protocol/keys.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { genesisDid, signOperation } from '../../../src/protocol/plc.ts'
import { createAccount, logIn, PASSWORD, xrpc, type TestAccount } from '../../support/clients/account.ts'
import { basic, bearer } from '../../support/clients/http.ts'
import { ADMIN_TOKEN } from '../../support/servers/pds.ts'
import { Subscriber, type Message } from '../../support/clients/subscriber.ts'
import { useWorld } from '../../support/world.ts'

/** A moderation service, with a key for itself and one for its labels. */
const [key, labelKey] = [signingKey('p256', new Uint8Array(32).fill(7)), signingKey('k256', new Uint8Array(32).fill(9))]
const genesis = signOperation(
  {
    type: 'plc_operation' as const,
    rotationKeys: [formatDidKey(key.publicKey)],
    verificationMethods: { atproto: formatDidKey(key.publicKey), atproto_label: formatDidKey(labelKey.publicKey) },
    alsoKnownAs: [],
    services: {},
    prev: null,
  },
  key,
)
const moderationDid = genesisDid(genesis)

let alice: TestAccount
let names = 0
const { pds } = useWorld({ config: { rateLimit: { enabled: false }, moderation: { did: moderationDid } } })
beforeAll(async () => {
  await pds.ctx.plc.submit(moderationDid, genesis)
})
beforeEach(async () => {
  alice = await createAccount(pds, `user${++names}`)
})

const operator = (nsid: string, init: { json?: object } = {}) =>
  xrpc(pds, `com.atproto.admin.${nsid}`, { ...init, headers: basic('admin', ADMIN_TOKEN) })
const update = (subject: object, change: object = {}) =>
  operator('updateSubjectStatus', { json: { subject, ...change } })
const repoRef = () => ({ $type: 'com.atproto.admin.defs#repoRef', did: alice.did })
const down = { takedown: { applied: true, ref: 'case 1' } }
const up = { takedown: { applied: false } }
const post = () =>
  alice.call('com.atproto.repo.createRecord', {
    json: {
      repo: alice.did,
      collection: 'app.bsky.feed.post',
      record: { $type: 'app.bsky.feed.post', text: 'hello', createdAt: new Date().toISOString() },
    },
  })

test('an account that is taken down is out of sight, writes nothing and does not log in', async () => {
  const { body: made } = await post()
  const subscriber = new Subscriber(pds.url)
  await subscriber.opened
  expect((await update(repoRef(), down)).body).toEqual({ subject: repoRef(), ...down })
  expect((await update(repoRef(), down)).status).toBe(200)

  expect(await post()).toMatchObject({
    status: 401,
    body: { error: 'AccountTakedown', message: 'Account has been taken down' },
  })
  expect(
    await xrpc(pds, 'com.atproto.server.createSession', { json: { identifier: alice.handle, password: PASSWORD } }),
  ).toMatchObject({
    status: 401,
    body: { error: 'AccountTakedown' },
  })
  expect(
    await xrpc(pds, 'com.atproto.server.createSession', { json: { identifier: alice.handle, password: 'wrong' } }),
  ).toMatchObject({
    status: 401,
    body: { error: 'AuthenticationRequired' },
  })
  expect(
    await xrpc(pds, 'com.atproto.server.refreshSession', { method: 'POST', headers: bearer(alice.refreshJwt) }),
  ).toMatchObject({
    status: 401,
    body: { error: 'AccountTakedown' },
  })
  expect(await alice.call('com.atproto.server.getSession')).toMatchObject({
    status: 400,
    body: { message: `Could not find user info for account: ${alice.did}` },
  })
  expect(await xrpc(pds, `com.atproto.identity.resolveHandle?handle=${alice.handle}`)).toMatchObject({ status: 400 })
  expect(await xrpc(pds, `com.atproto.sync.getRepo?did=${alice.did}`)).toMatchObject({
    status: 400,
    body: { error: 'RepoTakendown' },
  })
  expect((await operator(`getSubjectStatus?did=${alice.did}`)).body).toEqual({
    subject: repoRef(),
    ...down,
    deactivated: { applied: false },
  })

  await update(repoRef(), up)
  const told = (await subscriber.until(2)).map(({ type, body }) => [type, body['did'], body['status']])
  expect(told).toEqual([
    ['#account', alice.did, 'takendown'],
    ['#account', alice.did, undefined],
  ])
  subscriber.close()
  alice = await logIn(pds, alice, PASSWORD)
  expect(
    (
      await alice.call(
        `com.atproto.repo.getRecord?repo=${alice.did}&collection=app.bsky.feed.post&rkey=${made.uri.split('/').at(-1)}`,
      )
    ).status,
  ).toBe(200)
})

test('whoever is taken down still fetches what is theirs, and leaves', async () => {
  await update(repoRef(), down)
  const limited = await logIn(pds, alice, PASSWORD, { allowTakendown: true })
  const moving = 'com.atproto.server.getServiceAuth?aud=did:web:elsewhere.example.com&lxm='
  expect((await limited.call(`${moving}com.atproto.server.createAccount`)).status).toBe(200)
  expect(await limited.call(`${moving}app.bsky.feed.getTimeline`)).toMatchObject({
    status: 400,
    body: { error: 'InvalidToken', message: 'Bad token scope' },
  })
  expect((await limited.call(`com.atproto.sync.getRepo?did=${alice.did}`)).status).toBe(200)
  expect((await limited.call('app.bsky.actor.getPreferences')).status).toBe(200)
  expect((await limited.call('com.atproto.server.deactivateAccount', { json: {} })).status).toBe(200)
  expect((await operator(`getSubjectStatus?did=${alice.did}`)).body).toMatchObject({
    takedown: { applied: true },
    deactivated: { applied: true },
  })
  expect(
    (await xrpc(pds, 'com.atproto.server.refreshSession', { method: 'POST', headers: bearer(limited.refreshJwt) }))
      .status,
  ).toBe(401)
})

test('a record that is taken down is hidden, and comes back', async () => {
  const { body } = await post()
  const subject = { $type: 'com.atproto.repo.strongRef', uri: body.uri, cid: body.cid }
  const rkey = body.uri.split('/').at(-1)
  const read = () => xrpc(pds, `com.atproto.repo.listRecords?repo=${alice.did}&collection=app.bsky.feed.post`)
  expect((await update(subject, down)).status).toBe(200)
  expect((await read()).body.records).toEqual([])
  expect(
    (await operator(`getSubjectStatus?uri=${encodeURIComponent(`at://${alice.handle}/app.bsky.feed.post/${rkey}`)}`))
      .body,
  ).toEqual({
    subject,
    ...down,
  })
  await update(subject, up)
  expect((await read()).body.records).toHaveLength(1)
  expect((await operator(`getSubjectStatus?uri=${encodeURIComponent(body.uri)}`)).body).toEqual({ subject, ...up })
})

test('a blob that is taken down is not served, and comes back', async () => {
  const { body } = await alice.call('com.atproto.repo.uploadBlob', {
    method: 'POST',
    body: new Uint8Array([1, 2, 3]),
    headers: { 'content-type': 'application/octet-stream' },
  })
  const cid = body.blob.ref.$link
  await alice.call('com.atproto.repo.createRecord', {
    json: { repo: alice.did, collection: 'com.example.file', record: { $type: 'com.example.file', file: body.blob } },
  })
  const subject = { $type: 'com.atproto.admin.defs#repoBlobRef', did: alice.did, cid }
  const get = () => xrpc(pds, `com.atproto.sync.getBlob?did=${alice.did}&cid=${cid}`)
  expect((await get()).status).toBe(200)
  expect((await update(subject, down)).status).toBe(200)
  expect((await get()).status).toBe(400)
  expect((await operator(`getSubjectStatus?did=${alice.did}&blob=${cid}`)).body).toMatchObject({
    subject,
    takedown: { applied: true },
  })
  await update(subject, up)
  expect((await get()).status).toBe(200)
})

test('the operator deactivates and activates, and may have the state told again', async () => {
  await update(repoRef(), { deactivated: { applied: true } })
  expect((await post()).body.error).toBe('AccountDeactivated')
  await update(repoRef(), { deactivated: { applied: false } })
  expect((await post()).status).toBe(200)
  const subscriber = new Subscriber(pds.url)
  await subscriber.opened
  await update(repoRef())
  expect((await subscriber.until(1))[0]).toMatchObject({ type: '#account', body: { did: alice.did, active: true } })
  subscriber.close()
})

test('what cannot be is refused', async () => {
  expect(await update(repoRef(), { ...down, deactivated: { applied: false } })).toMatchObject({
    status: 400,
    body: { message: 'Cannot activate and takedown an account at the same time' },
  })
  expect(await update({ ...repoRef(), did: 'did:plc:aaaaaaaaaaaaaaaaaaaaaaaa' }, down)).toMatchObject({
    status: 400,
    body: { error: 'NotFound' },
  })
  expect(await operator('getSubjectStatus')).toMatchObject({ status: 400, body: { message: 'No provided subject' } })
  expect(
    await operator('getSubjectStatus?blob=bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku'),
  ).toMatchObject({
    status: 400,
    body: { message: 'Must provide a did to request blob state' },
  })
  expect(await operator('getSubjectStatus?did=did:plc:aaaaaaaaaaaaaaaaaaaaaaaa')).toMatchObject({
    status: 400,
    body: { error: 'NotFound', message: 'Subject not found' },
  })
})

test('the moderation service acts with its own tokens, nobody else does', async () => {
  const now = () => Math.floor(pds.clock.now() / 1000)
  const token = (with_: typeof key, claims: object = {}) =>
    formatServiceToken(with_, {
      iss: moderationDid,
      aud: pds.ctx.config.serverDid,
      lxm: 'com.atproto.admin.getSubjectStatus',
      iat: now(),
      exp: now() + 60,
      jti: crypto.randomUUID(),
      ...claims,
    })
  const look = (bearerToken: string, nsid = 'getSubjectStatus') =>
    xrpc(pds, `com.atproto.admin.${nsid}?did=${alice.did}`, { headers: bearer(bearerToken) })
  expect((await look(token(key))).status).toBe(200)
  expect((await look(token(labelKey, { iss: `${moderationDid}#atproto_labeler` }))).status).toBe(200)
  expect(await look(token(key, { iss: `${moderationDid}#other` }))).toMatchObject({
    status: 401,
    body: { error: 'UntrustedIss' },
  })
  expect(await look(token(key, { iss: alice.did as Did }))).toMatchObject({
    status: 401,
    body: { error: 'UntrustedIss', message: 'Untrusted issuer' },
  })
  expect(await look(token(key), 'getAccountInfo')).toMatchObject({
    status: 401,
    body: { error: 'BadJwtLexiconMethod' },
  })
  expect((await look(alice.accessJwt)).status).toBe(401)
  expect(
    (
      await xrpc(pds, 'com.atproto.admin.deleteAccount', {
        json: { did: alice.did },
        headers: bearer(token(key, { lxm: 'com.atproto.admin.deleteAccount' })),
      })
    ).status,
  ).toBe(401)
})

test('a takedown outranks a deactivation, for readers and for the network, until it is lifted', async () => {
  const status = async () => (await xrpc(pds, `com.atproto.sync.getRepoStatus?did=${alice.did}`)).body.status
  await alice.call('com.atproto.server.deactivateAccount', { json: {} })
  expect(await status()).toBe('deactivated')
  await update(repoRef(), down)
  expect(await status()).toBe('takendown')
  expect((await operator(`getSubjectStatus?did=${alice.did}`)).body).toMatchObject({
    takedown: { applied: true },
    deactivated: { applied: true },
  })
  expect(await update(repoRef(), { deactivated: { applied: false } })).toMatchObject({
    status: 400,
    body: { error: 'AccountNotFound' },
  })
  await update(repoRef(), up)
  expect(await status()).toBe('deactivated')
  await update(repoRef(), { deactivated: { applied: false } })
  expect(await status()).toBeUndefined()
  const told = (messages: readonly Message[]) =>
    messages
      .filter(({ type, body }) => type === '#account' && body['did'] === alice.did)
      .map(({ body }) => body['status'])
  const subscriber = new Subscriber(pds.url, '?cursor=0')
  const messages = await subscriber.untilSeen((seen) => told(seen).length === 5)
  subscriber.close()
  expect(told(messages)).toEqual([undefined, 'deactivated', 'takendown', 'deactivated', undefined])
})
