import { verifyJwt } from '@atproto/xrpc-server'
import { expect, test } from 'bun:test'
import { publishedSigningKey } from '../../../src/protocol/did-document.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { createAccount, logIn, xrpc } from '../../support/clients/account.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { MASTER_KEY } from '../../support/servers/pds.ts'
import { stranger } from '../../support/clients/stranger.ts'
import { deviceKey } from '../../support/clients/wallet.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'

const LXM = 'app.bsky.feed.getTimeline'
const AUD = 'did:web:api.example.com'

const { pds } = useWorld({ config: { signingKeyMasterKey: MASTER_KEY, rateLimit: { enabled: false } } })
const alice = setUp(() => createAccount(pds, 'alice'))

const ask = (params: Record<string, string>, who = alice) =>
  who.call(`com.atproto.server.getServiceAuth?${new URLSearchParams({ aud: AUD, ...params })}`)
const nowSecs = () => Math.floor(pds.clock.now() / 1000)
const appPassword = async (input: object) =>
  (await alice.call('com.atproto.server.createAppPassword', { json: { name: crypto.randomUUID(), ...input } })).body
    .password

test('other services accept the token, for the method and the audience that were asked for', async () => {
  const { body } = await ask({ lxm: LXM })
  const document = await pds.ctx.plc.document(alice.did as Did)
  const payload = await verifyJwt(body.token, AUD, LXM, async () => publishedSigningKey(document!)!)
  expect(payload).toMatchObject({ iss: alice.did, aud: AUD, lxm: LXM })
  expect(payload.exp - nowSecs()).toBeWithin(55, 61)
  const named = await ask({ aud: `${AUD}#bsky_appview`, lxm: LXM })
  expect(JSON.parse(Buffer.from(named.body.token.split('.')[1], 'base64url').toString()).aud).toBe(
    `${AUD}#bsky_appview`,
  )
})

test('what may not be asked for is refused', async () => {
  const cases: [Record<string, string>, string, string][] = [
    [{ aud: 'nonsense' }, 'InvalidRequest', 'aud must be a valid atproto DID or did#serviceId reference'],
    [
      { aud: 'did:web:example.com:path' },
      'InvalidRequest',
      'aud must be a valid atproto DID or did#serviceId reference',
    ],
    [
      { aud: 'did:key:zQ3shokFTS3brHcDQrn82RUDfCZESWL1ZdCEJwekUDPQiYBme' },
      'InvalidRequest',
      'aud must be a valid atproto DID or did#serviceId reference',
    ],
    [{ lxm: LXM, exp: String(nowSecs() - 10) }, 'BadExpiration', 'expiration is in past'],
    [
      { lxm: LXM, exp: String(nowSecs() + 3700) },
      'BadExpiration',
      'cannot request a token with an expiration more than an hour in the future',
    ],
    [
      { exp: String(nowSecs() + 120) },
      'BadExpiration',
      'cannot request a method-less token with an expiration more than a minute in the future',
    ],
    [
      { lxm: 'com.atproto.server.createAppPassword' },
      'InvalidRequest',
      'cannot request a service auth token for the following protected method: com.atproto.server.createAppPassword',
    ],
  ]
  for (const [params, error, message] of cases)
    expect(await ask(params)).toMatchObject({ status: 400, body: { error, message } })
})

test('direct messages need an app password with that grant', async () => {
  const lxm = 'chat.bsky.convo.getLog'
  const plain = await logIn(pds, alice, await appPassword({}))
  expect(await ask({ lxm }, plain)).toMatchObject({
    status: 400,
    body: { message: `insufficient access to request a service auth token for the following method: ${lxm}` },
  })
  expect((await ask({ lxm }, await logIn(pds, alice, await appPassword({ privileged: true })))).status).toBe(200)
})

const move = (did: string, token: string, name: string) =>
  xrpc(pds, 'com.atproto.server.createAccount', {
    json: { did, handle: `${name}.test`, email: `${name}@example.com`, password: 'long enough' },
    headers: bearer(token),
  })

test('whoever proves a DID may move it here, with keys of either curve, and starts deactivated', async () => {
  for (const curve of ['p256', 'k256'] as const) {
    const { did, token } = await stranger(pds, curve)
    const { status, body } = await move(did, token(), `mover-${curve}`)
    expect({ status, did: body.did }).toEqual({ status: 200, did })
    expect(await xrpc(pds, 'com.atproto.server.getSession', { headers: bearer(body.accessJwt) })).toMatchObject({
      body: { active: false, status: 'deactivated' },
    })
    expect(await move(did, token(), `again-${curve}`)).toMatchObject({ status: 400, body: { error: 'AlreadyExists' } })
  }
})

test('a move whose answer was lost goes on, for the owner of the DID with the same names, until the account was active', async () => {
  const { did, token, publish } = await stranger(pds, 'p256')
  const first = await move(did, token(), 'returning')
  expect(first.status).toBe(200)
  const again = await move(did, token(), 'returning')
  expect(again).toMatchObject({ status: 200, body: { did, handle: 'returning.test' } })
  expect(await xrpc(pds, 'com.atproto.server.getSession', { headers: bearer(again.body.accessJwt) })).toMatchObject({
    status: 200,
    body: { did, active: false },
  })
  const taken = { status: 400, body: { error: 'AlreadyExists' } }
  expect(await move(did, token(), 'returning-elsewhere')).toMatchObject(taken)
  const other = await stranger(pds, 'p256')
  expect((await move(did, other.token(), 'returning')).status).toBeGreaterThanOrEqual(400)
  expect(
    (
      await xrpc(pds, 'com.atproto.server.createAccount', {
        json: { did, handle: 'returning.test', email: 'returning@example.com', password: 'long enough' },
      })
    ).status,
  ).toBeGreaterThanOrEqual(400)

  const { body: wanted } = await xrpc(pds, 'com.atproto.identity.getRecommendedDidCredentials', {
    headers: bearer(again.body.accessJwt),
  })
  const late = token()
  await publish(wanted)
  expect(
    await xrpc(pds, 'com.atproto.server.activateAccount', { method: 'POST', headers: bearer(again.body.accessJwt) }),
  ).toMatchObject({
    status: 200,
  })
  pds.clock.advance({ secs: 1 })
  expect(
    await xrpc(pds, 'com.atproto.server.deactivateAccount', { json: {}, headers: bearer(again.body.accessJwt) }),
  ).toMatchObject({
    status: 200,
  })
  expect((await move(did, late, 'returning')).status).toBeGreaterThanOrEqual(400)
})

test('with a port in the public address, the DID of the server names it, and tokens for another spelling are not for us', async () => {
  const { port } = new URL(pds.url)
  const { did, token } = await stranger(pds, 'p256')
  const own = `did:web:localhost%3A${port}`
  expect((await xrpc(pds, 'com.atproto.server.describeServer')).body.did).toBe(own)
  expect(await request(`${pds.url}/.well-known/did.json`)).toMatchObject({ status: 200, body: { id: own } })
  expect(await ask({ aud: own, lxm: 'com.atproto.server.createAccount' })).toMatchObject({ status: 200 })
  for (const aud of ['did:web:localhost', `did:web:localhost:${port}`])
    expect(await move(did, token({ aud }), 'ported')).toMatchObject({ status: 401, body: { error: 'BadJwtAudience' } })
  expect(await move(did, token({ aud: own }), 'ported')).toMatchObject({ status: 200 })
})

test('of two arrivals of one DID at once, one counts', async () => {
  const { did, token } = await stranger(pds, 'p256')
  const answers = await Promise.all(['twin-one', 'twin-two', 'twin-three'].map((name) => move(did, token(), name)))
  expect(answers.map(({ status, body }) => [status, body.error ?? null]).toSorted()).toEqual([
    [200, null],
    [400, 'AlreadyExists'],
    [400, 'AlreadyExists'],
  ])
})

test('a DID is not taken without proof of it', async () => {
  const { did, token } = await stranger(pds, 'p256')
  const other = await stranger(pds, 'p256')
  const missing = {
    status: 401,
    body: { error: 'AuthenticationRequired', message: `Missing auth to create account with did: ${did}` },
  }
  expect(await move(did, other.token(), 'thief')).toMatchObject(missing)
  expect(
    await xrpc(pds, 'com.atproto.server.createAccount', {
      json: { did, handle: 'thief.test', email: 'thief@example.com', password: 'long enough' },
    }),
  ).toMatchObject(missing)

  const refused: [string, string, string][] = [
    ['not.a.jwt', 'BadJwt', 'poorly formatted jwt'],
    [alice.accessJwt, 'BadJwtType', 'Invalid jwt type "at+jwt"'],
    [
      token().replace(/^[^.]+/, Buffer.from('{"typ":"at+jwt","alg":"ES256"}').toString('base64url')),
      'BadJwtType',
      'Invalid jwt type "at+jwt"',
    ],
    [token({ exp: nowSecs() - 1 }), 'JwtExpired', 'jwt expired'],
    [
      token({ lxm: 'com.atproto.repo.uploadBlob' }),
      'BadJwtLexiconMethod',
      'bad jwt lexicon method ("lxm"). must match: com.atproto.server.createAccount',
    ],
    [
      token({ lxm: undefined }),
      'BadJwtLexiconMethod',
      'missing jwt lexicon method ("lxm"). must match: com.atproto.server.createAccount',
    ],
    [token({ iss: 'nobody' }), 'BadJwtIss', 'jwt iss is not a valid did'],
    [token({ iss: 'did:plc:aaaaaaaaaaaaaaaaaaaaaaaa' }), 'AuthenticationRequired', 'could not resolve iss did'],
    [other.token({ iss: did }), 'BadJwtSignature', 'jwt signature does not match jwt issuer'],
    [token({ aud: 'did:web:elsewhere.example.com' }), 'BadJwtAudience', 'jwt audience does not match service did'],
  ]
  for (const [text, error, message] of refused)
    expect(await move(did, text, 'thief')).toMatchObject({ status: 401, body: { error, message } })
})

test('the key of a labeler does nothing for the account that runs it', async () => {
  const { did, didKey, token, publish } = await stranger(pds, 'k256')
  expect(await move(did, token(), 'labelled')).toMatchObject({ status: 200 })
  await publish({ verificationMethods: { atproto: deviceKey().did, atproto_label: didKey } })
  const iss = `${did}#atproto_labeler`
  expect(await move(did, token({ iss }), 'another')).toMatchObject({
    status: 401,
    body: { error: 'AuthenticationRequired' },
  })
  const headers = { 'content-type': 'text/plain', ...bearer(token({ iss, lxm: 'com.atproto.repo.uploadBlob' })) }
  expect(await xrpc(pds, 'com.atproto.repo.uploadBlob', { method: 'POST', body: 'a text', headers })).toMatchObject({
    status: 401,
    body: { error: 'UntrustedIss' },
  })
})

test('a key that was published after the document was kept counts', async () => {
  const { did, didKey, token, publish } = await stranger(pds, 'k256')
  await publish({ verificationMethods: {} })
  expect(await move(did, token(), 'late')).toMatchObject({
    status: 401,
    body: { error: 'AuthenticationRequired', message: 'missing or bad key in did doc' },
  })
  await publish({ verificationMethods: { atproto: didKey } })
  expect(await move(did, token(), 'late')).toMatchObject({ status: 200 })
})

test('a moved account signs with the key that was promised to its DID', async () => {
  const { did, token } = await stranger(pds, 'p256')
  const { body: reserved } = await xrpc(pds, 'com.atproto.server.reserveSigningKey', { json: { did } })
  const { body: session } = await move(did, token(), 'promised')
  const { body } = await xrpc(pds, 'com.atproto.identity.getRecommendedDidCredentials', {
    headers: bearer(session.accessJwt),
  })
  expect(body.verificationMethods.atproto).toBe(reserved.signingKey)
})
