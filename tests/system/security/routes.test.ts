/**
 * Who may call what outside the standard methods, whose table is in `tests/system/conformance`: every route stands here
 * with the kind of caller it is for, so that a new one without a guard fails.
 */
import { beforeAll, describe, expect, test } from 'bun:test'
import { features } from '../../../src/features.ts'
import { createAccount } from '../../support/clients/account.ts'
import { forCeremonies } from '../../support/clients/ceremony.ts'
import { basic, bearer, request, type Answer } from '../../support/clients/http.ts'
import { ADMIN_TOKEN } from '../../support/servers/pds.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'

/**
 * `open`: everybody. `operator`: the admin token or a paired device; `master`: the token alone. `holder`: who is signed
 * in in the browser, `console`: as an operator. `client`: an OAuth client with its proof. `code`: who shows a one-time
 * code in the body.
 * `directory`: everybody, where the server runs a PLC directory of its own. `metrics`: as configured. `owner`: the
 * account itself, by its session or that of a wallet; `parent`: the owner, where others are refused as of
 * `/agent/child`; `wallet`: that of a wallet alone; `pending`: that of a wallet whose account is in the making.
 * `device`: a device that holds a token. `flat owner`: the owner, where refusals have the format of OAuth. `party`: the
 * wallet that began a transfer, or the device that accepted it. `service`: services that the configuration trusts.
 */
type For =
  | 'owner'
  | 'flat owner'
  | 'wallet'
  | 'parent'
  | 'pending'
  | 'device'
  | 'party'
  | 'open'
  | 'operator'
  | 'master'
  | 'holder'
  | 'console'
  | 'client'
  | 'code'
  | 'directory'
  | 'metrics'
  | 'service'

const routes: Record<string, For> = {
  'GET /': 'open',
  'GET /robots.txt': 'open',
  'GET /assets/style.css': 'open',
  'GET /assets/logo': 'open',
  'GET /assets/wallet-consent.js': 'open',
  'GET /assets/passkeys.js': 'open',
  'GET /assets/proof-of-work.js': 'open',
  'GET /xrpc/_health': 'open',
  'GET /livez': 'open',
  'GET /readyz': 'open',
  'GET /metrics': 'metrics',
  'GET /tls-check': 'open',
  'GET /.well-known/did.json': 'open',
  'GET /.well-known/atproto-did': 'open',
  'GET /.well-known/change-password': 'open',
  'GET /.well-known/oauth-protected-resource': 'open',
  'GET /.well-known/oauth-authorization-server': 'open',
  'GET /oauth/jwks': 'open',
  'POST /waitlist': 'open',
  'GET /v1/sign-up': 'open',

  'GET /oauth/par': 'open',
  'PUT /oauth/par': 'open',
  'DELETE /oauth/par': 'open',
  'POST /oauth/par': 'client',
  'POST /oauth/token': 'client',
  'POST /oauth/revoke': 'client',

  'GET /oauth/authorize': 'open',
  'POST /oauth/authorize': 'open',
  'GET /oauth/authorize/status': 'open',
  'GET /oauth/authorize/consent-request': 'open',
  'POST /oauth/authorize/approve': 'open',
  'POST /oauth/authorize/complete': 'open',
  'GET /account/move-here': 'open',
  'POST /account/move-here': 'open',
  'GET /account/move-here/begin': 'open',
  'POST /account/move-here/begin': 'open',
  'GET /account/move-here/backup': 'open',
  'POST /account/move-here/backup': 'open',
  'GET /account/move-here/backup/begin': 'open',
  'POST /account/move-here/backup/begin': 'open',
  'GET /account/move': 'holder',
  'POST /account/move': 'holder',
  'GET /account/move/archive': 'open',
  'POST /account/move/archive': 'holder',
  'GET /account/move-away': 'holder',
  'POST /account/move-away': 'holder',
  'POST /language': 'open',
  'GET /account/sign-in': 'open',
  'POST /account/sign-in': 'open',
  'GET /account/sign-in/wallet': 'open',
  'POST /account/sign-in/wallet': 'open',
  'GET /account/sign-in/wallet/complete': 'open',
  'POST /account/sign-in/wallet/complete': 'open',
  'GET /account/sign-up': 'open',
  'POST /account/sign-up': 'open',
  'GET /account/reset-password': 'open',
  'POST /account/reset-password': 'open',
  'GET /account/reset-password/code': 'open',
  'POST /account/reset-password/code': 'open',
  'GET /account': 'holder',
  'GET /account/sign-out': 'open',
  'POST /account/sign-out': 'holder',
  'GET /account/pushes': 'open',
  'POST /account/pushes': 'holder',
  'GET /account/apps': 'open',
  'POST /account/apps': 'holder',
  'GET /account/agents': 'open',
  'POST /account/agents': 'holder',
  'GET /account/agents/record': 'holder',
  'GET /account/network': 'holder',
  'GET /account/sessions': 'open',
  'POST /account/sessions': 'holder',
  'GET /account/browsers': 'open',
  'POST /account/browsers': 'holder',
  'GET /account/wallet-sessions': 'open',
  'POST /account/wallet-sessions': 'holder',
  'GET /account/wallet/requests': 'open',
  'POST /account/wallet/requests': 'holder',
  'GET /account/wallet/transfer': 'open',
  'POST /account/wallet/transfer': 'holder',
  'GET /account/wallet/devices': 'open',
  'POST /account/wallet/devices': 'holder',
  'GET /account/app-passwords': 'open',
  'POST /account/app-passwords': 'holder',
  'GET /account/app-passwords/revoke': 'open',
  'POST /account/app-passwords/revoke': 'holder',
  'GET /account/archive/import': 'holder',
  'POST /account/archive/import': 'holder',
  'GET /account/archive/import/begin': 'open',
  'POST /account/archive/import/begin': 'holder',
  'GET /account/archive': 'open',
  'POST /account/archive': 'holder',
  'GET /account/archive/kept': 'open',
  'POST /account/archive/kept': 'holder',
  'GET /account/archive/schedule': 'open',
  'POST /account/archive/schedule': 'holder',
  'GET /account/handle/domain': 'holder',
  'POST /account/handle/domain': 'holder',
  'GET /account/identity': 'holder',
  'GET /account/identity/escrow/:action': 'open',
  'POST /account/identity/escrow/start': 'holder',
  'POST /account/identity/escrow/cancel': 'holder',
  'POST /account/identity/escrow/delete': 'holder',
  'GET /account/identity/own-key': 'open',
  'POST /account/identity/own-key': 'holder',
  'GET /account/identity/own-key/begin': 'open',
  'POST /account/identity/own-key/begin': 'holder',
  'GET /account/identity/hosting': 'open',
  'POST /account/identity/hosting': 'holder',
  'GET /account/recovery': 'open',
  'POST /account/recovery': 'open',
  'GET /account/recovery/share': 'open',
  'POST /account/recovery/share': 'open',
  'GET /account/reactivate': 'open',
  'POST /account/reactivate': 'holder',
  'GET /account/email/code': 'open',
  'POST /account/email/code': 'holder',
  'GET /account/deactivate': 'open',
  'POST /account/deactivate': 'holder',
  'GET /account/delete': 'open',
  'POST /account/delete': 'holder',
  'GET /account/delete/code': 'open',
  'POST /account/delete/code': 'holder',
  'GET /account/email/confirm': 'open',
  'POST /account/email/confirm': 'holder',
  'GET /account/handle': 'open',
  'POST /account/handle': 'holder',
  'GET /account/email': 'open',
  'POST /account/email': 'holder',
  'GET /account/activity': 'holder',
  'GET /account/data': 'holder',
  'GET /account/data/blob': 'holder',
  'GET /account/sharing': 'holder',
  'GET /account/sharing/record': 'holder',
  'GET /account/sharing/invite': 'open',
  'POST /account/sharing/invite': 'holder',
  'GET /account/sharing/end': 'open',
  'POST /account/sharing/end': 'holder',
  'GET /account/sharing/accept': 'open',
  'POST /account/sharing/accept': 'holder',
  'GET /account/sharing/leave': 'open',
  'POST /account/sharing/leave': 'holder',
  'GET /account/handles': 'open',
  'POST /account/handles': 'holder',
  'GET /account/handles/remove': 'open',
  'POST /account/handles/remove': 'holder',
  'GET /account/factors': 'open',
  'POST /account/factors': 'holder',
  'GET /account/password': 'open',
  'POST /account/password': 'holder',

  'POST /agent/identity': 'open',
  'POST /agent/identity/claim': 'open',
  'POST /agent/identity/claim/confirm': 'flat owner',
  'POST /v1/agents/claim-preview': 'owner',
  'GET /agent/claim': 'open',
  'POST /agent/claim': 'open',
  'GET /auth.md': 'open',
  'POST /agent/event/notify': 'open',
  'GET /v1/app-passwords': 'owner',
  'POST /v1/app-passwords': 'owner',
  'POST /v1/app-passwords/revoke': 'owner',
  'GET /v1/delegates': 'owner',
  'POST /v1/delegates': 'owner',
  'POST /v1/delegates/:id/end': 'owner',
  'GET /v1/delegates/acts': 'owner',
  'GET /v1/shared-accounts': 'owner',
  'POST /v1/shared-accounts/:id/accept': 'owner',
  'POST /v1/shared-accounts/:id/leave': 'owner',
  'GET /v1/admin/delegations': 'operator',
  'POST /v1/admin/delegations/:id/end': 'operator',
  'GET /v1/agents': 'owner',
  'POST /v1/agents/:registrationId/revoke': 'owner',
  'GET /v1/agents/:registrationId/audit': 'owner',
  'GET /v1/admin/agents': 'operator',
  'POST /v1/admin/agents/revoke': 'operator',
  'POST /agent/child': 'parent',
  'GET /agent/child': 'parent',
  'POST /agent/child/revoke': 'parent',
  'POST /agent/child/delete': 'parent',

  'POST /v1/rotation-keys': 'owner',
  'POST /v1/handles': 'wallet',
  'DELETE /v1/handles/:handle': 'wallet',
  'POST /v1/sessions/sovereign': 'open',
  'POST /v1/did-web/hosting': 'owner',
  'POST /v1/did-web/document': 'owner',
  'GET /v1/did-web/document': 'owner',
  'GET /v1/dids/:did': 'open',
  'GET /v1/devices/:id/pds': 'device',
  'POST /v1/move-in/plan': 'open',
  'POST /v1/move-in/offer': 'open',
  'POST /v1/move-in': 'open',
  'GET /v1/move-in': 'owner',
  'POST /v1/move-in/answer': 'owner',
  'POST /v1/move-in/archive': 'owner',
  'DELETE /v1/move-in': 'owner',
  'GET /v1/move-out': 'owner',
  'POST /v1/move-out/leave': 'owner',
  'POST /v1/transfer/initiate': 'wallet',
  'POST /v1/transfer/accept': 'code',
  'POST /v1/transfer/complete': 'party',
  'GET /v1/admin/transfers': 'operator',
  'POST /v1/admin/transfers/:id/cancel': 'operator',
  'POST /v1/notifications/register': 'owner',
  'DELETE /v1/notifications/register/:deviceUuid': 'owner',
  'POST /v1/admin/notifications/register': 'operator',
  'POST /v1/admin/notifications/test': 'operator',
  'POST /v1/repo-keys/rotation': 'owner',
  'POST /v1/repo-keys/rotation/complete': 'owner',

  'POST /v1/accounts': 'master',
  'POST /v1/accounts/mobile': 'code',
  'POST /v1/devices': 'code',
  'GET /v1/repo-signing-key': 'pending',
  'POST /v1/dids': 'pending',
  'POST /v1/accounts/sessions': 'open',
  'POST /v1/pds/keys': 'operator',
  'GET /v1/pds/keys': 'open',
  'GET /v1/admin/ceremonies': 'operator',

  'PUT /v1/recovery/escrow-share': 'owner',
  'DELETE /v1/recovery/escrow-share': 'owner',
  'POST /v1/recovery/release/cancel': 'owner',
  'POST /v1/recovery/initiate': 'open',
  'POST /v1/recovery/release': 'open',

  'GET /v1/admin/recovery-releases': 'operator',
  'GET /v1/account/archive': 'owner',
  'GET /v1/account/data': 'owner',
  'GET /v1/account/data/blob': 'owner',
  'GET /v1/account/events': 'owner',
  'POST /v1/account/archive': 'owner',
  'POST /v1/admin/accounts/:did/archive': 'master',
  'GET /v1/admin/accounts/:did/archive': 'operator',
  'GET /v1/admin/host-rename': 'operator',
  'POST /v1/admin/host-rename': 'operator',
  'GET /v1/admin/host-rename/plan': 'operator',
  'GET /v1/admin/host-rename/open': 'operator',
  'GET /v1/admin/accounts': 'operator',
  'POST /v1/admin/accounts/:did/email': 'operator',
  'POST /v1/admin/accounts/lookup': 'operator',
  'GET /v1/admin/accounts/:did/quota': 'operator',
  'POST /v1/admin/accounts/:did/quota': 'operator',
  'GET /v1/admin/quota': 'operator',
  'POST /v1/admin/quota': 'operator',
  'POST /v1/admin/accounts/:did/reset-token': 'operator',
  'POST /v1/admin/accounts/:did/reset-mail': 'operator',
  'POST /v1/admin/accounts/:did/reset-factors': 'operator',
  'POST /v1/admin/accounts/:did/revoke-credentials': 'operator',
  'GET /v1/accounts/:did/usage': 'operator',
  'GET /v1/admin/accounts/:did/data': 'operator',
  'GET /v1/admin/accounts/:did/data/blob': 'operator',
  'GET /v1/admin/accounts/:did/events': 'operator',
  'GET /v1/accounts/:did/storage': 'operator',
  'POST /v1/accounts/claim-codes': 'operator',
  'GET /v1/accounts/claim-codes': 'operator',
  'POST /v1/accounts/claim-codes/revoke': 'operator',
  'GET /v1/admin/health': 'operator',
  'GET /v1/admin/configuration': 'operator',
  'POST /v1/admin/configuration': 'operator',
  'GET /v1/admin/doctor': 'operator',
  'GET /v1/admin/accounts/:did/access': 'operator',
  'POST /v1/admin/accounts/:did/access/end': 'operator',
  'GET /v1/admin/requests': 'operator',
  'GET /v1/admin/alerts': 'operator',
  'GET /v1/admin/identities': 'operator',
  'GET /v1/admin/integrity': 'operator',
  'GET /v1/admin/network': 'operator',
  'POST /v1/admin/alerts/test': 'operator',
  'GET /v1/admin/relay-status': 'operator',
  'POST /v1/admin/sweeps/:name/run': 'operator',
  'GET /v1/admin/cluster': 'operator',
  'GET /v1/admin/certificates': 'operator',
  'GET /v1/admin/steps': 'operator',
  'POST /v1/admin/steps/retry': 'operator',
  'POST /v1/admin/steps/drop': 'operator',
  'POST /v1/admin/request-crawl': 'operator',
  'POST /v1/admin/probe': 'operator',
  'GET /v1/notifications/sender-keys': 'owner',
  'GET /v1/admin/notifications/sender-keys': 'operator',
  'GET /v1/admin/notifications/sender-keys/all': 'operator',
  'POST /v1/admin/notifications/sender-keys/rotate': 'operator',
  'POST /v1/admin/notifications/sender-keys/:kid/retire': 'operator',
  'POST /v1/admin/notifications/sender-keys/:kid/revoke': 'operator',
  'GET /v1/admin/audit': 'operator',
  'GET /v1/admin/consents': 'operator',
  'GET /v1/admin/waitlist': 'operator',
  'POST /v1/admin/waitlist/invite': 'operator',
  'POST /v1/admin/waitlist/remove': 'operator',
  'POST /v1/admin/pairing-codes': 'master',
  'POST /v1/admin/devices': 'code',
  'GET /v1/admin/devices': 'operator',
  'POST /v1/admin/devices/:id/revoke': 'operator',
  'POST /v1/admin/sessions': 'code',
  'GET /v1/admin/sessions': 'operator',
  'POST /v1/admin/sessions/prove': 'operator',
  'POST /v1/admin/sessions/:id/end': 'operator',
  'GET /v1/admin/me': 'operator',
  'GET /v1/admin/growth': 'operator',
  'GET /admin/sign-in': 'open',
  'POST /admin/sign-in': 'open',
  'GET /admin': 'console',
  'GET /admin/accounts': 'console',
  'GET /admin/account': 'console',
  'GET /admin/cases': 'console',
  'GET /admin/case': 'console',
  'GET /admin/case/export': 'console',
  'GET /admin/sign-ups': 'console',
  'GET /admin/data': 'console',
  'GET /admin/data/blob': 'console',
  'GET /admin/invites': 'console',
  'GET /admin/waitlist': 'console',
  'GET /admin/audit': 'console',
  'GET /admin/configuration': 'console',
  'GET /admin/requests': 'console',
  'GET /admin/agents': 'console',
  'GET /admin/pushes': 'console',
  'GET /admin/operators': 'console',
  'GET /admin/network': 'console',
  'GET /admin/work': 'console',
  'POST /admin/sign-out': 'console',
  'POST /admin/act': 'console',
  'GET /v1/admin/blobs/quarantine': 'operator',
  'POST /v1/admin/blobs/quarantine': 'operator',
  'POST /v1/admin/blobs/release': 'operator',
  'GET /v1/admin/sign-ups': 'operator',
  'POST /v1/admin/sign-ups/undo': 'operator',
  'GET /v1/admin/cases': 'operator',
  'POST /v1/admin/cases': 'operator',
  'GET /v1/admin/cases/:id': 'operator',
  'POST /v1/admin/cases/:id/notes': 'operator',
  'POST /v1/admin/cases/:id/deadline': 'operator',
  'POST /v1/admin/cases/:id/decision': 'operator',
  'POST /v1/admin/cases/:id/answer': 'operator',
  'GET /v1/admin/cases/:id/export': 'operator',
  'POST /v1/decisions/view': 'code',
  'POST /v1/decisions/appeal': 'code',
  'POST /v1/abuse-notices': 'service',
  'GET /account/appeal': 'open',
  'POST /account/appeal': 'open',
  'GET /v1/admin/operators': 'operator',
  'POST /v1/admin/operators': 'operator',

  'GET /export': 'directory',
  'GET /:did': 'directory',
  'GET /:did/data': 'directory',
  'GET /:did/log': 'directory',
  'GET /:did/log/audit': 'directory',
  'GET /:did/log/last': 'directory',
  'POST /:did': 'directory',
}

/** Alice's browser, signed in. */
let cookie: string
const { pds } = useWorld({
  config: { ...forCeremonies, waitlist: { enabled: true }, telemetry: { metricsRequireAdmin: true } },
})
const alice = setUp(() => createAccount(pds, 'alice'))
beforeAll(async () => {
  const signedIn = await form('/account/sign-in', { identifier: alice.handle, password: alice.password })
  expect(signedIn.status).toBe(303)
  cookie = signedIn.headers.get('set-cookie')!.split(';')[0]!
})

const form = (path: string, fields: Record<string, string>, headers: Record<string, string> = {}) =>
  request(`${pds.url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
    body: new URLSearchParams(fields).toString(),
  })

/** Forms with files. */
const uploads = new Set(['/account/archive/import', '/account/move/archive'])
const upload = (path: string, fields: Record<string, string>, headers: Record<string, string> = {}) => {
  const body = new FormData()
  for (const [name, value] of Object.entries(fields)) body.append(name, value)
  return request(`${pds.url}${path}`, { method: 'POST', headers, body })
}
const formOn = (path: string): typeof form => (uploads.has(path) ? upload : form)

const pathOf = (route: string) => route.split(' ')[1]!.replace(':did', alice.did).replace(/:\w+/, 'something')
const call = (route: string, headers: Record<string, string>): Promise<Answer> => {
  const [method] = route.split(' ') as [string]
  return method === 'GET'
    ? request(`${pds.url}${pathOf(route)}`, { headers })
    : request(`${pds.url}${pathOf(route)}`, { method, json: {}, headers })
}
const routesFor = (...kinds: For[]) => Object.keys(routes).filter((route) => kinds.includes(routes[route]!))

test('the table names every route', () => {
  const declared = features
    .flatMap(({ routes: endpoints = [] }) => endpoints)
    .flatMap((endpoint) => (endpoint.kind === 'route' ? [`${endpoint.method} ${endpoint.path}`] : []))
  expect(declared.toSorted()).toEqual(Object.keys(routes).toSorted())
})

test.each(routesFor('operator', 'master', 'metrics'))('%s is closed to everybody but operators', async (route) => {
  const strangers: Record<string, string>[] = [
    {},
    bearer(alice.accessJwt),
    bearer(alice.refreshJwt),
    bearer(''),
    bearer(`${ADMIN_TOKEN}x`),
    bearer(ADMIN_TOKEN.toUpperCase()),
    { authorization: `DPoP ${ADMIN_TOKEN}` },
    basic('admin', alice.password),
    basic(alice.handle, ADMIN_TOKEN),
    { cookie },
    {
      'x-admin-device': 'nobody',
      'x-admin-timestamp': String(Math.floor(pds.clock.now() / 1000)),
      'x-admin-nonce': 'nonce',
      'x-admin-signature': 'c2ln',
    },
  ]
  for (const headers of strangers) {
    const { status, body } = await call(route, headers)
    expect({ headers, status, code: body.error?.code }).toEqual({ headers, status: 401, code: 'UNAUTHORIZED' })
  }
  expect((await call(route, bearer(ADMIN_TOKEN))).status).not.toBe(401)
})

test.each(routesFor('owner', 'wallet', 'parent', 'pending', 'device', 'party'))(
  '%s is closed to strangers and operators',
  async (route) => {
    const kind = routes[route]!
    const code = kind === 'owner' ? 'INVALID_TOKEN' : 'UNAUTHORIZED'
    const missing = ['owner', 'pending', 'party'].includes(kind) ? 'AUTHENTICATION_REQUIRED' : 'UNAUTHORIZED'
    expect(await call(route, {})).toMatchObject({ status: 401, body: { error: { code: missing } } })
    const strangers = [
      bearer(ADMIN_TOKEN),
      basic('admin', ADMIN_TOKEN),
      bearer(alice.refreshJwt),
      bearer('A'.repeat(43)),
      bearer('x.y.z'),
    ]
    for (const headers of strangers) {
      const { status, body } = await call(route, headers)
      expect({ headers, status, code: body.error?.code }).toEqual({ headers, status: 401, code })
    }
  },
)

test.each(routesFor('flat owner'))('%s is closed to strangers and operators', async (route) => {
  const strangers = [
    {},
    bearer(ADMIN_TOKEN),
    basic('admin', ADMIN_TOKEN),
    bearer(alice.refreshJwt),
    bearer('A'.repeat(43)),
    { cookie },
  ]
  for (const headers of strangers as Record<string, string>[]) {
    const { status, body } = await call(route, headers)
    expect({ headers, status, error: body.error }).toEqual({ headers, status: 401, error: 'invalid_token' })
  }
})

test.each(routesFor('holder'))('%s is for who is signed in in this browser, on a page of ours', async (route) => {
  for (const headers of [
    {},
    bearer(alice.accessJwt),
    basic('admin', ADMIN_TOKEN),
    { cookie: 'holdfast=AAAA' },
  ] as Record<string, string>[]) {
    const path = pathOf(route)
    const { status, headers: answered } = route.startsWith('GET')
      ? await call(route, headers)
      : await formOn(path)(path, { account: alice.did }, headers)
    expect({ headers, status, location: answered.get('location') }).toEqual({
      headers,
      status: 303,
      location: '/account/sign-in',
    })
  }
  if (route.startsWith('GET')) return
  const elsewhere: Record<string, string>[] = [
    { origin: 'https://evil.example' },
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
    {},
  ]
  const path = pathOf(route)
  for (const headers of elsewhere)
    expect((await formOn(path)(path, { account: alice.did, form_token: 'guess' }, { cookie, ...headers })).status).toBe(
      403,
    )
})

test.each(routesFor('console'))('%s is for operators who are signed in in this browser', async (route) => {
  for (const headers of [
    {},
    { cookie },
    { cookie: `holdfast-operator=${'A'.repeat(43)}` },
    { cookie: `holdfast-operator=${ADMIN_TOKEN}` },
    bearer(ADMIN_TOKEN),
    bearer(alice.accessJwt),
  ] as Record<string, string>[]) {
    const { status, headers: answered } = route.startsWith('GET')
      ? await call(route, headers)
      : await form(pathOf(route), { act: 'crawl' }, headers)
    expect({ headers, status, location: answered.get('location') }).toEqual({
      headers,
      status: 303,
      location: '/admin/sign-in',
    })
  }
})

test.each(routesFor('client'))('%s answers no client without its parameters', async (route) => {
  const { status, body } = await form(pathOf(route), {})
  expect({ status, error: body.error }).toEqual({ status: 400, error: 'invalid_request' })
})

test('a device is paired with a code, once, and never with a guess', async () => {
  const guess = {
    pairingCode: 'guess',
    label: 'phone',
    platform: 'ios',
    publicKey: 'x',
    timestamp: Math.floor(pds.clock.now() / 1000),
    signature: 'x',
  }
  expect(await request(`${pds.url}/v1/admin/devices`, { json: guess })).toMatchObject({ status: 401 })
})

test('browsers of other origins read nothing that is for operators or shown to people', async () => {
  const origin = 'https://evil.example'
  for (const route of routesFor(
    'operator',
    'master',
    'metrics',
    'holder',
    'console',
    'code',
    'owner',
    'wallet',
    'pending',
    'device',
    'party',
  )) {
    for (const method of ['OPTIONS', 'GET']) {
      const { headers } = await request(`${pds.url}${pathOf(route)}`, {
        method,
        headers: {
          origin,
          ...bearer(ADMIN_TOKEN),
          'access-control-request-method': 'POST',
          'access-control-request-headers': 'authorization',
        },
      })
      expect([route, method, headers.get('access-control-allow-origin')]).toEqual([route, method, null])
    }
  }
  for (const path of ['/oauth/authorize', '/account/sign-in'])
    expect(
      (await request(`${pds.url}${path}`, { headers: { origin } })).headers.get('access-control-allow-origin'),
    ).toBeNull()
})

describe('methods of the standard lexicons', () => {
  /** Whoever asks. All others name a guard; `tests/system/conformance` tries each with every kind of credential. */
  const open = [
    'com.atproto.identity.refreshIdentity',
    'com.atproto.identity.resolveDid',
    'com.atproto.identity.resolveHandle',
    'com.atproto.identity.resolveIdentity',
    'com.atproto.repo.describeRepo',
    'com.atproto.repo.getRecord',
    'com.atproto.repo.listRecords',
    'com.atproto.server.createSession',
    'com.atproto.server.deleteAccount',
    'com.atproto.server.describeServer',
    'com.atproto.server.requestPasswordReset',
    'com.atproto.server.resetPassword',
    'com.atproto.sync.getRepoStatus',
    'com.atproto.sync.listRepos',
    'com.atproto.sync.subscribeRepos',
    'com.atproto.temp.checkHandleAvailability',
  ]

  test('name a guard, unless they are for everybody', () => {
    const unguarded = features
      .flatMap(({ routes: endpoints = [] }) => endpoints)
      .flatMap((endpoint) =>
        'nsid' in endpoint && (endpoint.kind === 'subscription' || endpoint.spec.auth === undefined)
          ? [endpoint.nsid as string]
          : [],
      )
    expect(unguarded.toSorted()).toEqual(open)
  })
})
