/** Every limiter: what it counts, for whom, what shares it, and what it says. */
import { beforeAll, describe, expect, test } from 'bun:test'
import { Secret } from '../../../src/base/secret.ts'
import { limitNames, type LimitName } from '../../../src/platform/running/limits.ts'
import { createAccount, logIn, type TestAccount } from '../../support/clients/account.ts'
import { basic, bearer, request, type Answer } from '../../support/clients/http.ts'
import { OperatorDevice } from '../../support/clients/operator-device.ts'
import { ADMIN_TOKEN, startPds } from '../../support/servers/pds.ts'
import { Subscriber } from '../../support/clients/subscriber.ts'
import { useWorld } from '../../support/world.ts'

const MINUTE = 60
const MINUTES_5 = 300
const HOUR = 3600
const DAY = 86_400
/** What the tests give each limiter whose size is configured. */
const FEW = 3

type Send = (headers: Record<string, string>) => Promise<Answer>

interface Limiter {
  /** Points within the seconds, the shorter window first. */
  windows: [number, number][]
  by: 'address' | 'account'
  /** Requests that share the budget; each is let through and answered somehow. */
  requests: Send[]
  cost?: number
}

let alice: TestAccount
const { pds } = useWorld({
  config: {
    waitlist: { enabled: true },
    spaces: { enabled: true },
    agentAuth: { serviceAuthEnabled: true },
    signingKeyMasterKey: new Secret(new Uint8Array(32)),
    rateLimit: {
      createAccountPer5min: FEW,
      createSessionPer5min: FEW,
      resetPasswordPer5min: FEW,
      updateHandlePer5min: FEW,
      recoveryPer5min: FEW,
      waitlistPer5min: FEW,
      transferAcceptPer5min: FEW,
      agentClaimConfirmPer5min: FEW,
    },
  },
  options: { alone: 'what a node says of a limit is what it knows of the others' },
})
beforeAll(async () => {
  alice = await createAccount(pds, 'alice')
})

const xrpc =
  (nsid: string, init: () => Parameters<typeof request>[1] = () => ({})): Send =>
  (headers) => {
    const { headers: own, ...rest } = init()!
    return request(`${pds.url}/xrpc/${nsid}`, {
      ...rest,
      headers: { ...headers, ...(own as Record<string, string> | undefined) },
    })
  }
const post = (nsid: string, json: unknown): Send => xrpc(nsid, () => ({ json }))
const asAlice = (nsid: string, json?: () => unknown): Send =>
  xrpc(nsid, () => ({ method: 'POST', headers: bearer(alice.accessJwt), ...(json && { json: json() }) }))
const page =
  (path: string, fields: Record<string, string>): Send =>
  (headers) =>
    request(`${pds.url}${path}`, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams(fields).toString(),
    })

const note = { $type: 'org.example.note', text: 'words' }
const limiters: Partial<Record<LimitName, Limiter>> = {
  globalIp: {
    windows: [[3000, MINUTES_5]],
    by: 'address',
    requests: [xrpc('com.atproto.server.describeServer'), xrpc('com.atproto.sync.listRepos')],
  },
  createAccount: {
    windows: [[FEW, MINUTES_5]],
    by: 'address',
    requests: [
      post('com.atproto.server.createAccount', { handle: 'a.b.test' }),
      page('/account/sign-up', { name: '-' }),
    ],
  },
  createSession: {
    windows: [[FEW, MINUTES_5]],
    by: 'address',
    requests: [
      post('com.atproto.server.createSession', { identifier: 'nobody.test', password: 'no' }),
      page('/account/sign-in', { identifier: 'somebody.test', password: 'no' }),
    ],
  },
  resetPassword: {
    windows: [[FEW, MINUTES_5]],
    by: 'address',
    requests: [
      post('com.atproto.server.resetPassword', { token: 'no', password: 'a new password' }),
      page('/account/reset-password/code', { code: 'no', password: 'a new password' }),
    ],
  },
  updateHandle: {
    windows: [[FEW, MINUTES_5]],
    by: 'address',
    requests: [asAlice('com.atproto.identity.updateHandle', () => ({ handle: 'a.b.test' }))],
  },
  recovery: {
    windows: [[FEW, MINUTES_5]],
    by: 'address',
    requests: [
      (headers) => request(`${pds.url}/v1/recovery/initiate`, { json: { identifier: 'nobody.test' }, headers }),
      (headers) => request(`${pds.url}/v1/recovery/release`, { json: { identifier: 'nobody.test' }, headers }),
    ],
  },
  pushRequest: {
    windows: [[500, MINUTES_5]],
    by: 'address',
    requests: [(headers) => request(`${pds.url}/oauth/par`, { json: {}, headers })],
  },
  waitlist: {
    windows: [[FEW, MINUTES_5]],
    by: 'address',
    requests: [(headers) => request(`${pds.url}/waitlist`, { json: { email: 'a@example.com' }, headers })],
  },
  repoWrite: {
    windows: [
      [5000, HOUR],
      [35_000, DAY],
    ],
    by: 'account',
    requests: [
      asAlice('com.atproto.repo.deleteRecord', () => ({
        repo: alice.did,
        collection: 'org.example.note',
        rkey: 'none',
      })),
    ],
  },
  operatorGuess: {
    windows: [[30, MINUTES_5]],
    by: 'address',
    requests: [
      xrpc('com.atproto.admin.getAccountInfo?did=did:web:a.test', () => ({ headers: basic('admin', 'guess') })),
      xrpc('com.atproto.admin.getAccountInfo?did=did:web:a.test', () => ({ headers: bearer('guess') })),
      xrpc('com.atproto.admin.deleteAccount', () => ({ json: { did: 'did:web:a.test' }, headers: bearer('guess') })),
      xrpc('com.atproto.sync.getRepo?did=did:web:a.test', () => ({ headers: basic('admin', 'guess') })),
      (headers) => request(`${pds.url}/v1/admin/health`, { headers: { ...headers, ...bearer('guess') } }),
      (headers) => request(`${pds.url}/v1/admin/health`, { headers: { ...headers, 'x-admin-device': 'guess' } }),
      (headers) =>
        request(`${pds.url}/v1/admin/devices`, {
          json: {
            pairingCode: 'guess',
            label: 'a',
            publicKey: 'did:key:z',
            platform: 'a',
            timestamp: 1,
            signature: 'a',
          },
          headers,
        }),
      (headers) => request(`${pds.url}/metrics`, { headers: { ...headers, ...bearer('guess') } }),
    ],
  },
  getRepo: {
    windows: [[6000, MINUTES_5]],
    by: 'address',
    requests: [
      (headers) => xrpc(`com.atproto.sync.getRepo?did=${alice.did}`)(headers),
      (headers) => xrpc(`com.atproto.sync.getCheckout?did=${alice.did}`)(headers),
    ],
  },
  deleteAccount: {
    windows: [[50, MINUTES_5]],
    by: 'address',
    requests: [post('com.atproto.server.deleteAccount', { did: 'did:plc:nobody', password: 'no', token: 'no' })],
  },
  requestPasswordReset: {
    windows: [
      [15, HOUR],
      [50, DAY],
    ],
    by: 'address',
    requests: [
      post('com.atproto.server.requestPasswordReset', { email: 'nobody@example.com' }),
      page('/account/reset-password', { email: 'nobody@example.com' }),
    ],
  },
  requestMail: {
    windows: [
      [5, HOUR],
      [15, DAY],
    ],
    by: 'account',
    requests: [asAlice('com.atproto.server.requestEmailConfirmation')],
  },
  accountReach: {
    windows: [[20, MINUTES_5]],
    by: 'address',
    requests: [(headers) => request(`${pds.url}/account/network`, { headers })],
  },
  exportAccount: {
    windows: [
      [10, HOUR],
      [30, DAY],
    ],
    by: 'account',
    requests: [
      (headers) => request(`${pds.url}/v1/account/archive`, { headers: { ...headers, ...bearer(alice.accessJwt) } }),
    ],
  },
  importAccount: {
    windows: [
      [10, HOUR],
      [30, DAY],
    ],
    by: 'account',
    requests: [
      (headers) =>
        request(`${pds.url}/v1/account/archive`, { json: {}, headers: { ...headers, ...bearer(alice.accessJwt) } }),
      (headers) =>
        request(`${pds.url}/xrpc/com.atproto.repo.importRepo`, {
          method: 'POST',
          body: 'no archive',
          headers: { ...headers, ...bearer(alice.accessJwt), 'content-type': 'application/vnd.ipld.car' },
        }),
    ],
  },
  spaceRead: {
    windows: [[3000, MINUTES_5]],
    by: 'account',
    requests: [
      (headers) =>
        request(`${pds.url}/xrpc/com.atproto.space.listSpaces`, {
          headers: { ...headers, ...bearer(alice.accessJwt) },
        }),
    ],
  },
  planMove: {
    windows: [
      [10, MINUTES_5],
      [50, DAY],
    ],
    by: 'address',
    requests: [(headers) => request(`${pds.url}/v1/move-in/plan`, { json: {}, headers })],
  },
  answerMove: {
    windows: [[20, MINUTES_5]],
    by: 'account',
    requests: [
      (headers) =>
        request(`${pds.url}/v1/move-out/leave`, {
          json: { deleteAfterDays: 'soon' },
          headers: { ...headers, ...bearer(alice.accessJwt) },
        }),
    ],
  },
  putPreferences: {
    windows: [
      [200, MINUTES_5],
      [2000, DAY],
    ],
    by: 'account',
    requests: [asAlice('app.bsky.actor.putPreferences', () => ({ preferences: [] }))],
  },
  statusChange: {
    windows: [
      [20, MINUTES_5],
      [200, DAY],
    ],
    by: 'account',
    requests: [asAlice('com.atproto.server.activateAccount')],
  },
  uploadBlob: {
    windows: [[1000, DAY]],
    by: 'account',
    requests: [
      xrpc('com.atproto.repo.uploadBlob', () => ({
        method: 'POST',
        body: 'bytes',
        headers: { ...bearer(alice.accessJwt), 'content-type': 'text/plain' },
      })),
    ],
  },
  depositShare: {
    windows: [
      [60, HOUR],
      [300, DAY],
    ],
    by: 'account',
    requests: [
      (headers) =>
        request(`${pds.url}/v1/recovery/escrow-share`, {
          method: 'PUT',
          json: {},
          headers: { ...headers, ...bearer(alice.accessJwt) },
        }),
    ],
  },
  transferAccept: {
    windows: [[FEW, MINUTES_5]],
    by: 'address',
    requests: [
      (headers) =>
        request(`${pds.url}/v1/transfer/accept`, {
          json: { code: 'AAAAAA', devicePublicKey: 'z', platform: 'ios' },
          headers,
        }),
    ],
  },
  agentIdentity: {
    windows: [[60, MINUTES_5]],
    by: 'address',
    requests: [(headers) => request(`${pds.url}/agent/identity`, { json: {}, headers })],
  },
  agentServiceAuth: {
    windows: [[30, MINUTES_5]],
    by: 'address',
    requests: [
      (headers) =>
        request(`${pds.url}/agent/identity`, {
          json: { type: 'service_auth', login_hint: 'nobody@example.com' },
          headers,
        }),
    ],
  },
  agentClaimConfirm: {
    windows: [[FEW, MINUTES_5]],
    by: 'address',
    requests: [
      (headers) =>
        request(`${pds.url}/agent/identity/claim/confirm`, {
          json: {},
          headers: { ...headers, ...bearer(alice.accessJwt) },
        }),
      (headers) =>
        request(`${pds.url}/v1/agents/claim-preview`, {
          json: {},
          headers: { ...headers, ...bearer(alice.accessJwt) },
        }),
      page('/agent/claim', { step: 'decide' }),
    ],
  },
  makeChild: {
    windows: [
      [30, HOUR],
      [60, DAY],
    ],
    by: 'account',
    requests: [
      (headers) => request(`${pds.url}/agent/child`, { json: {}, headers: { ...headers, ...bearer(alice.accessJwt) } }),
    ],
  },
  inviteDelegate: {
    windows: [[20, DAY]],
    by: 'account',
    requests: [
      (headers) =>
        request(`${pds.url}/v1/delegates`, { json: {}, headers: { ...headers, ...bearer(alice.accessJwt) } }),
    ],
  },
  rotateRepoKey: {
    windows: [[30, MINUTES_5]],
    by: 'account',
    requests: ['rotation', 'rotation/complete'].map(
      (path): Send =>
        (headers) =>
          request(`${pds.url}/v1/repo-keys/${path}`, { json: {}, headers: { ...headers, ...bearer(alice.accessJwt) } }),
    ),
  },
  registerPush: {
    windows: [
      [30, HOUR],
      [100, DAY],
    ],
    by: 'account',
    requests: [
      (headers) =>
        request(`${pds.url}/v1/notifications/register`, {
          json: {},
          headers: { ...headers, ...bearer(alice.accessJwt) },
        }),
    ],
  },
  appeal: {
    windows: [[60, MINUTES_5]],
    by: 'address',
    requests: [
      ...['view', 'appeal'].map(
        (path): Send =>
          (headers) =>
            request(`${pds.url}/v1/decisions/${path}`, { json: {}, headers }),
      ),
      page('/account/appeal', { code: 'none' }),
    ],
  },
  reserveSigningKey: {
    windows: [[5, MINUTE]],
    by: 'address',
    requests: [xrpc('com.atproto.server.reserveSigningKey', () => ({ json: {} }))],
  },
}

/** Their endpoints are not built yet. */
const AHEAD: LimitName[] = ['oauthConsentCreate', 'oauthConsentAction']

/**
 * They say nothing while they count, or count neither addresses nor accounts, so they have tests of their own
 * (`signup/taken-address.test.ts`, `accounts/account-events.test.ts`, `accounts/unconfirmed-address.test.ts`,
 * `agents/`, `notifications/`, `waitlist/`, `security/codes.test.ts`).
 */
const QUIET: LimitName[] = [
  'agentIdentityTotal',
  'waitlistTotal',
  'agentUserCode',
  'transferAcceptTotal',
  'agentToken',
  'recordedCall',
  'takenAddress',
  'unconfirmedAddress',
  'unconfirmedByAnyone',
  'signInNotice',
  'accountNotice',
  'loginApprovalPush',
  'agentAskPush',
  'foreignReport',
  'irohConnection',
  'irohConnectionTotal',
  'irohEchoTotal',
]

let addresses = 0
const newAddress = () => `198.51.100.${++addresses}`
const from = (address: string) => ({ 'x-forwarded-for': address })

/** What the limiter counts by, for requests from the address. */
const keyOf = (name: LimitName, { by }: Limiter, address: string) =>
  by === 'address' ? address : `${name === 'requestMail' ? 'confirm_email ' : ''}${alice.did}`

test('the table names every limiter', () => {
  expect([...Object.keys(limiters), ...AHEAD, ...QUIET].toSorted()).toEqual(limitNames.toSorted())
})

describe.each(Object.entries(limiters) as [LimitName, Limiter][])('%s', (name, limiter) => {
  const { windows, by, requests, cost = 1 } = limiter
  /** Leave `left` points of the window. */
  const spend = (address: string, points: number) => {
    for (let spent = 0; spent < points; spent += 5)
      pds.ctx.limits.charge({ name, key: keyOf(name, limiter, address), cost: Math.min(5, points - spent) })
  }

  test('counts down over everything that shares it, refuses, and begins anew', async () => {
    const [[points, secs]] = windows as [[number, number]]
    const address = newAddress()
    spend(address, points - requests.length * cost)
    for (const [i, send] of requests.entries()) {
      const { status, headers } = await send(from(address))
      expect(status).not.toBe(429)
      expect(Object.fromEntries(headers)).toMatchObject({
        'ratelimit-limit': String(points),
        'ratelimit-remaining': String((requests.length - i - 1) * cost),
        'ratelimit-policy': `${points};w=${secs}`,
      })
      expect(headers.get('retry-after')).toBeNull()
    }
    for (const send of requests) {
      const { status, headers, body } = await send(from(address))
      expect(status).toBe(429)
      expect(JSON.stringify(body)).toMatch(/RateLimitExceeded|RATE_LIMITED|Rate Limit Exceeded|Too many attempts/)
      expect(Object.fromEntries(headers)).toMatchObject({
        'ratelimit-limit': String(points),
        'ratelimit-remaining': '0',
        'ratelimit-policy': `${points};w=${secs}`,
      })
      const [reset, retryAfter, now] = [
        Number(headers.get('ratelimit-reset')),
        Number(headers.get('retry-after')),
        pds.clock.now() / 1000,
      ]
      expect(reset - now).toBeGreaterThan(0)
      expect(reset - now).toBeLessThanOrEqual(secs + 1)
      expect(Math.abs(now + retryAfter - reset)).toBeLessThan(3)
    }
    expect((await requests[0]!(from(newAddress()))).status === 429).toBe(by === 'account')
    pds.clock.advance({ secs: secs + 1 })
    // Her token ends meanwhile.
    if (secs >= HOUR) alice = await logIn(pds, alice, alice.password)
    expect((await requests[0]!(from(address))).status).not.toBe(429)
  })
})

const remaining = ({ headers }: Answer) => [
  Number(headers.get('ratelimit-limit')),
  Number(headers.get('ratelimit-remaining')),
]

test('writes cost by what they do, to the account and not to its address', async () => {
  pds.clock.advance({ days: 2 })
  alice = await logIn(pds, alice, alice.password)
  const collection = 'org.example.note'
  const repo = alice.did
  const write = async (nsid: string, input: object) => {
    const answer = await alice.call(nsid, { json: { repo, ...input }, headers: from(newAddress()) })
    expect(answer.status).toBe(200)
    return remaining(answer)
  }
  const create = { $type: 'com.atproto.repo.applyWrites#create', collection, value: note }
  const remove = { $type: 'com.atproto.repo.applyWrites#delete', collection, rkey: 'self' }
  expect(await write('com.atproto.repo.createRecord', { collection, record: note })).toEqual([5000, 4997])
  expect(await write('com.atproto.repo.putRecord', { collection, rkey: 'self', record: note })).toEqual([5000, 4995])
  expect(await write('com.atproto.repo.deleteRecord', { collection, rkey: 'none' })).toEqual([5000, 4994])
  expect(await write('com.atproto.repo.applyWrites', { writes: [create, create, remove] })).toEqual([5000, 4987])
})

test('over a day the daily budget is what runs out', async () => {
  pds.clock.advance({ days: 2 })
  for (let hour = 0; hour < 7; hour++) {
    if (hour > 0) pds.clock.advance({ secs: HOUR + 1 })
    expect(pds.ctx.limits.charge({ name: 'repoWrite', key: alice.did, cost: 5000 })).toMatchObject({ allowed: true })
  }
  pds.clock.advance({ secs: HOUR + 1 })
  alice = await logIn(pds, alice, alice.password)
  const answer = await alice.call('com.atproto.repo.createRecord', {
    json: { repo: alice.did, collection: 'org.example.note', record: note },
  })
  expect(answer.status).toBe(429)
  expect(answer.headers.get('ratelimit-policy')).toBe(`35000;w=${DAY}`)
  expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(HOUR)
})

test('codes by mail are counted for each purpose and account', async () => {
  pds.clock.advance({ days: 2 })
  const bob = await createAccount(pds, 'bob')
  alice = await logIn(pds, alice, alice.password)
  const confirm = (account: TestAccount) =>
    account.call('com.atproto.server.requestEmailConfirmation', { method: 'POST', headers: from('203.0.113.9') })
  for (let i = 0; i < 5; i++) expect((await confirm(alice)).status).toBe(200)
  expect((await confirm(alice)).status).toBe(429)
  expect((await confirm(bob)).status).toBe(200)
  expect((await alice.call('com.atproto.server.requestAccountDelete', { method: 'POST' })).status).toBe(200)
})

/** Requests that are refused, each for a different reason, and with which status. */
const refused: [string, number, Send][] = [
  ['no token', 401, xrpc('com.atproto.server.getSession')],
  ['a token that is none', 400, xrpc('com.atproto.server.getSession', () => ({ headers: bearer('no.such.token') }))],
  [
    'a malformed header',
    400,
    xrpc('com.atproto.server.getSession', () => ({ headers: { authorization: 'Bearer a b' } })),
  ],
  [
    'a wrong operator token',
    401,
    xrpc(`com.atproto.admin.getAccountInfo?did=did:web:a.test`, () => ({ headers: basic('admin', 'guess') })),
  ],
  [
    'a wrong operator token outside /xrpc',
    401,
    (headers) => request(`${pds.url}/v1/admin/health`, { headers: { ...headers, ...bearer('guess') } }),
  ],
  ['a bad parameter', 400, xrpc('com.atproto.sync.listRepos?limit=-1')],
  ['a missing parameter', 400, xrpc('com.atproto.repo.getRecord')],
  ['a bad body', 400, asAlice('com.atproto.repo.deleteRecord', () => 5)],
  [
    'a body of another type',
    400,
    xrpc('com.atproto.server.createInviteCode', () => ({
      method: 'POST',
      body: 'x',
      headers: basic('admin', ADMIN_TOKEN),
    })),
  ],
  ['a wrong method', 400, xrpc('com.atproto.server.describeServer', () => ({ method: 'POST' }))],
  ['a method that nobody has', 400, xrpc('com.atproto.server.describeServer', () => ({ method: 'PUT' }))],
  ['a name that is no NSID', 400, xrpc('no_name')],
  ['a method of other services without a token', 401, xrpc('app.bsky.feed.getTimeline')],
  ['a stream asked for without an upgrade', 401, xrpc('com.atproto.sync.subscribeRepos')],
  ['a path that is none', 404, (headers) => request(`${pds.url}/nowhere`, { headers })],
  [
    "a page under somebody's handle",
    404,
    (headers) => request(pds.url, { headers: { ...headers, host: 'alice.test' } }),
  ],
]

test.each(refused)('%s costs as much as a request that succeeds', async (_, status, send) => {
  const address = newAddress()
  const answer = await send(from(address))
  expect(answer.status).toBe(status)
  expect(pds.ctx.limits.charge({ name: 'globalIp', key: address })).toMatchObject({ limit: 3000, remaining: 2998 })
  expect(pds.ctx.limits.charge({ name: 'globalIp', key: address, cost: 2998 })).toMatchObject({ allowed: true })
  expect((await send(from(address))).status).toBe(429)
})

test("an endpoint's own limit counts malformed requests too", async () => {
  const address = newAddress()
  for (const input of [5, { identifier: 5 }, {}])
    expect((await post('com.atproto.server.createSession', input)(from(address))).status).toBe(400)
  expect(
    (await post('com.atproto.server.createSession', { identifier: 'a.test', password: 'no' })(from(address))).status,
  ).toBe(429)
})

test('a preflight is free', async () => {
  const address = newAddress()
  expect((await xrpc('com.atproto.server.describeServer', () => ({ method: 'OPTIONS' }))(from(address))).status).toBe(
    204,
  )
  expect(pds.ctx.limits.charge({ name: 'globalIp', key: address })).toMatchObject({ remaining: 2999 })
})

test('what is refused is not counted, neither there nor elsewhere', async () => {
  const address = newAddress()
  const logInBadly = post('com.atproto.server.createSession', { identifier: 'whoever.test', password: 'no' })
  for (let i = 0; i < 10; i++) await logInBadly(from(address))
  expect(remaining(await xrpc('com.atproto.server.describeServer')(from(address)))).toEqual([3000, 3000 - FEW - 1])

  const other = newAddress()
  expect(pds.ctx.limits.charge({ name: 'globalIp', key: other, cost: 3000 })).toMatchObject({ remaining: 0 })
  for (let i = 0; i < 10; i++) expect((await logInBadly(from(other))).status).toBe(429)
  expect(pds.ctx.limits.charge({ name: 'createSession', key: other })).toMatchObject({ limit: FEW, remaining: FEW - 1 })
})

test('who has guessed too often is refused with the right credentials too, and nobody else is', async () => {
  const ask = (address: string, headers: Record<string, string>) =>
    request(`${pds.url}/v1/admin/health`, { headers: { ...from(address), ...headers } })
  const [guesser, operator] = [newAddress(), newAddress()]
  for (let i = 0; i < 3; i++)
    for (const headers of [{}, bearer(ADMIN_TOKEN)])
      expect((await ask(guesser, headers)).headers.get('ratelimit-limit')).toBe('3000')
  for (let i = 0; i < 30; i++) expect((await ask(guesser, bearer(`guess ${i}`))).status).toBe(401)
  const device = await OperatorDevice.paired(pds)
  for (const headers of [
    bearer('guess'),
    bearer(ADMIN_TOKEN),
    basic('admin', ADMIN_TOKEN),
    device.headers('/v1/admin/health'),
  ]) {
    expect(await ask(guesser, headers)).toMatchObject({ status: 429, body: { error: { code: 'RATE_LIMITED' } } })
    expect((await ask(operator, headers)).status).toBe(JSON.stringify(headers).includes('guess') ? 401 : 200)
  }
  expect((await xrpc('com.atproto.server.describeServer')(from(guesser))).status).toBe(200)
  expect((await ask(guesser, {})).status).toBe(401)
})

test('some of it is open to whoever has used up the rest', async () => {
  const address = newAddress()
  pds.ctx.limits.charge({ name: 'globalIp', key: address, cost: 3000 })
  expect((await xrpc('com.atproto.server.describeServer')(from(address))).status).toBe(429)
  expect((await xrpc(`com.atproto.sync.getRepo?did=${alice.did}`)(from(address))).status).toBe(200)
  expect((await xrpc('_health')(from(address))).status).toBe(200)
  expect((await request(`${pds.url}/metrics`, { headers: { ...from(address), ...bearer(ADMIN_TOKEN) } })).status).toBe(
    200,
  )
  const relay = new Subscriber(pds.url, '?cursor=0')
  await relay.until(1)
  relay.close()
})

test('a proxy asks about names of certificates as often as its clients try them, and others do not', async () => {
  const tlsCheck = (headers: Record<string, string> = {}) =>
    request(`${pds.url}/tls-check?domain=nobody.test`, { headers })
  pds.ctx.limits.charge({ name: 'globalIp', key: '127.0.0.1', cost: 2990 })
  for (let i = 0; i < 20; i++) expect((await tlsCheck()).status).toBe(404)
  expect((await request(`${pds.url}/xrpc/com.atproto.server.describeServer`)).status).toBe(200)
  const address = newAddress()
  pds.ctx.limits.charge({ name: 'globalIp', key: address, cost: 2999 })
  expect((await tlsCheck(from(address))).status).toBe(404)
  expect((await tlsCheck(from(address))).status).toBe(429)
})

test('an address is what the nearest proxy says; a client with a network has one budget', async () => {
  const spent = async (forwardedFor: string) =>
    3000 - remaining(await xrpc('com.atproto.server.describeServer')({ 'x-forwarded-for': forwardedFor }))[1]!
  expect(await spent('203.0.113.20')).toBe(1)
  expect(await spent('1.2.3.4, 203.0.113.20')).toBe(2)
  expect(await spent('203.0.113.20, 10.0.0.7, 127.0.0.1')).toBe(3)
  expect(await spent('2001:db8:1:2::1')).toBe(1)
  expect(await spent('2001:db8:1:2:ffff:ffff:ffff:ffff')).toBe(2)
  expect(await spent('2001:0DB8:0001:0002::3')).toBe(3)
  expect(await spent('2001:db8:1:3::1')).toBe(1)
  expect(await spent('::ffff:203.0.113.20')).toBe(4)
})

describe('a /48 network of IPv6', () => {
  const signIn = xrpc('com.atproto.server.createSession', () => ({
    json: { identifier: 'nobody.test', password: 'no' },
  }))
  const isRefused = async (address: string, send = signIn) => (await send(from(address))).status === 429

  test('has ten budgets for all that it is divided into', async () => {
    pds.clock.advance({ days: 1 })
    for (let i = 0; i < 10; i++) {
      // The password of an identifier may be wrong five times in a minute.
      pds.clock.advance({ secs: 2 })
      for (let n = 0; n < FEW; n++) await signIn(from(`2001:db8:48:${i}::${n}`))
      expect(pds.ctx.limits.spent({ name: 'createSession', key: `2001:db8:48:${i}::/64` })).not.toBeNull()
    }
    expect(pds.ctx.limits.spent({ name: 'createSession', key: '2001:db8:48::/48', times: 10 })).not.toBeNull()
    const { status, headers } = await signIn(from('2001:db8:48:abcd::1'))
    expect([status, headers.get('ratelimit-limit'), headers.get('ratelimit-remaining')]).toEqual([
      429,
      String(10 * FEW),
      '0',
    ])
    expect(pds.ctx.limits.spent({ name: 'createSession', key: '2001:db8:49::/48', times: 10 })).toBeNull()
    expect((await xrpc('com.atproto.server.describeServer')(from('2001:db8:48:abcd::1'))).status).toBe(200)
  })

  test('has ten budgets for wrong guesses too', async () => {
    const guess = xrpc('com.atproto.admin.getAccountInfo?did=did:web:a.test', () => ({
      headers: basic('admin', 'guess'),
    }))
    for (let i = 0; i < 10; i++)
      pds.ctx.limits.charge({ name: 'operatorGuess', key: '2001:db8:50::/48', times: 10, cost: 29 })
    for (let i = 0; i < 10; i++) expect(await isRefused(`2001:db8:50:${i}::1`, guess)).toBe(false)
    expect(await isRefused('2001:db8:50:abcd::1', guess)).toBe(true)
    expect(await isRefused('2001:db8:51:abcd::1', guess)).toBe(false)
  })

  test('is nothing that IPv4 has: each address has its own', async () => {
    for (let i = 0; i < 11; i++)
      for (let n = 0; n < FEW; n++) pds.ctx.limits.charge({ name: 'createSession', key: `203.0.113.${100 + i}` })
    expect(pds.ctx.limits.spent({ name: 'createSession', key: '203.0.113.99' })).toBeNull()
  })
})

test('each surface says it in its own words', async () => {
  const address = newAddress()
  pds.ctx.limits.charge({ name: 'globalIp', key: address, cost: 3000 })
  const at = async (path: string, init = {}) =>
    (
      await request(`${pds.url}${path}`, {
        ...init,
        headers: { authorization: `Bearer ${ADMIN_TOKEN}`, ...from(address) },
      })
    ).body
  expect(await at('/v1/admin/health')).toMatchObject({ error: { code: 'RATE_LIMITED' } })
  expect(await at('/oauth/token', { method: 'POST' })).toMatchObject({ error: 'temporarily_unavailable' })
  expect(await at('/waitlist', { method: 'POST' })).toMatchObject({ error: { code: 'RATE_LIMITED' } })
  expect(await at('/xrpc/com.atproto.server.describeServer')).toEqual({
    error: 'RateLimitExceeded',
    message: 'Rate Limit Exceeded',
  })
})

test('a blocked login reports the failures in its headers, not another limit that has points left', async () => {
  await using other = await startPds()
  const guess = () =>
    request(`${other.url}/xrpc/com.atproto.server.createSession`, {
      json: { identifier: 'victim.test', password: 'no' },
    })
  for (let i = 0; i < 5; i++) expect((await guess()).headers.get('ratelimit-policy')).toBe('30;w=300')
  const { status, headers } = await guess()
  const told = ['limit', 'remaining', 'policy'].map((name) => headers.get(`ratelimit-${name}`))
  expect([status, ...told, headers.get('retry-after')]).toEqual([429, '5', '0', '5;w=60', '60'])
  expect(Number(headers.get('ratelimit-reset')) - other.clock.now() / 1000).toBeWithin(0, 62)
})

test('0 switches one limiter off, and the master switch all of them but the window of failed logins', async () => {
  await using open = await startPds({ rateLimit: { createSessionPer5min: 0 } })
  const guess = (identifier: string, headers = {}) =>
    request(`${open.url}/xrpc/com.atproto.server.createSession`, { json: { identifier, password: 'no' }, headers })
  for (let i = 0; i < 4; i++) expect((await guess(`${i}.test`)).headers.get('ratelimit-limit')).toBe('3000')
  await open.restart({ rateLimit: { enabled: false } })
  for (let i = 0; i < 5; i++) expect(await guess('victim.test')).toMatchObject({ status: 401 })
  const blocked = await guess('victim.test')
  expect(blocked.status).toBe(429)
  expect(blocked.headers.get('retry-after')).toBe('60')
  expect(blocked.headers.get('ratelimit-policy')).toBe('5;w=60')
  expect((await guess('other.test')).status).toBe(401)
})
