/** Sessions that wallets open with a key of the identity: what they are, and how everything else is refused. */
import { beforeEach, expect, test } from 'bun:test'
import { listSessions } from '../../../src/features/access/sessions/sessions.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { nextOperation, signOperation, tombstone } from '../../../src/protocol/plc.ts'
import { holder, logIn, xrpc } from '../../support/clients/account.ts'
import { basic, bearer, request } from '../../support/clients/http.ts'
import { ADMIN_TOKEN, startPds } from '../../support/servers/pds.ts'
import {
  askSession,
  deviceKey,
  sessionRequest,
  sovereignAccount,
  type DeviceKey,
} from '../../support/clients/wallet.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'
import { atOneNode } from '../../support/turns.ts'

const { pds, line } = useWorld({
  line: true,
  config: {
    rateLimit: { enabled: false },
    accounts: { passwordOptional: true },
  },
})
const alice = setUp(() => sovereignAccount(pds, 'alice', { password: undefined }))
beforeEach(() => {
  line.arrived.length = 0
})

const signIn = (account = alice, changes = {}) => askSession(pds, sessionRequest(pds, account, changes))
const sessionsOf = async (did: string): Promise<number> =>
  (await listSessions(pds.ctx.db, did as Did, pds.clock.now())).length
const claimsOf = (jwt: string) => JSON.parse(Buffer.from(jwt.split('.')[1]!, 'base64url').toString())

/** What every refused proof gets, to the byte. */
const REFUSAL = '{"error":{"code":"AUTHENTICATION_REQUIRED","message":"The proof was not accepted"}}'

test('a key of the identity opens a session with full access, on either curve, with a password or without', async () => {
  for (const [name, curve, password] of [
    ['p', 'p256', undefined],
    ['k', 'k256', undefined],
    ['w', 'p256', 'a password of its own'],
  ] as const) {
    const account = await sovereignAccount(pds, `full-${name}`, { password }, deviceKey(curve))
    const { status, headers, body } = await signIn(account)
    expect({ status, members: Object.keys(body).toSorted() }).toEqual({
      status: 200,
      members: ['accessJwt', 'did', 'email', 'handle', 'refreshJwt'],
    })
    expect(headers.get('access-control-allow-origin')).toBeNull()
    expect(body).toMatchObject({ did: account.did, handle: account.handle, email: account.email })
    const [access, refresh] = [claimsOf(body.accessJwt), claimsOf(body.refreshJwt)]
    expect(access).toMatchObject({ scope: 'com.atproto.access', sub: account.did, aud: pds.ctx.config.serverDid })
    expect(access.exp - access.iat).toBe(7200)
    expect(refresh).toMatchObject({
      scope: 'com.atproto.refresh',
      sub: account.did,
      aud: pds.ctx.config.serverDid,
      jti: expect.any(String),
    })
    expect(refresh.exp - refresh.iat).toBe(7_776_000)
    const session = holder(pds, { ...account, ...body })
    expect(await session.call('com.atproto.server.createAppPassword', { json: { name: 'phone' } })).toMatchObject({
      status: 200,
    })
    const refreshed = await xrpc(pds, 'com.atproto.server.refreshSession', {
      method: 'POST',
      headers: bearer(body.refreshJwt),
    })
    expect(refreshed).toMatchObject({ status: 200, body: { did: account.did, active: true } })
    expect(
      await xrpc(pds, 'com.atproto.server.getSession', { headers: bearer(refreshed.body.accessJwt) }),
    ).toMatchObject({ status: 200 })
  }
})

test('the app, its network and what it signed in with are told to the holder and the operator', async () => {
  const ann = await sovereignAccount(pds, 'ann')
  const sent = { ...sessionRequest(pds, ann) }
  await askSession(pds, sent, { 'user-agent': 'Bluesky/1.90.0 CFNetwork/1494.0.7 Darwin/23.4.0' })
  await pds.ctx.background.settled()
  await pds.runSteps()
  const notices = pds.mails.filter(({ to, subject }) => to === ann.email && subject.startsWith('New sign-in'))
  expect(notices).toHaveLength(1)
  expect(notices[0]!.text).toContain('signed in to your account with a wallet')
  expect(notices[0]!.text).not.toContain('/account/reset-password')
  expect(pds.log.filter(({ message, did }) => message === 'signed in' && did === ann.did)).toMatchObject([
    { means: 'wallet' },
  ])
  const secrets = [sent.nonce, sent.signature]
  for (const secret of secrets) expect(JSON.stringify(pds.log)).not.toContain(secret)
})

test('a new password ends the sessions of the old one, and not those of wallets; signing out everywhere ends all', async () => {
  const bob = await sovereignAccount(pds, 'bob')
  const [byKey, byPassword] = [(await signIn(bob)).body, await logIn(pds, bob, bob.password)]
  const refresh = async (jwt: string) =>
    (await xrpc(pds, 'com.atproto.server.refreshSession', { method: 'POST', headers: bearer(jwt) })).status
  const admin = basic('admin', ADMIN_TOKEN)
  const changed = { json: { did: bob.did, password: 'another long password' }, headers: admin }
  expect(await xrpc(pds, 'com.atproto.admin.updateAccountPassword', changed)).toMatchObject({ status: 200 })
  expect([await refresh(byPassword.refreshJwt), await refresh(byKey.refreshJwt)]).toEqual([400, 200])
  const revoked = await request(`${pds.url}/v1/admin/accounts/${bob.did}/revoke-credentials`, {
    json: {},
    headers: bearer(ADMIN_TOKEN),
  })
  expect(revoked).toMatchObject({ status: 200, body: { sessionsRevoked: 1 } })
  const { body: again } = await signIn(bob)
  expect(await refresh(again.refreshJwt)).toBe(200)
})

test('each of these is refused with the same bytes and the same headers', async () => {
  const other = deviceKey()
  const [gone, asleep, down] = [
    await sovereignAccount(pds, 'gone'),
    await sovereignAccount(pds, 'asleep'),
    await sovereignAccount(pds, 'down'),
  ]
  const admin = basic('admin', ADMIN_TOKEN)
  await xrpc(pds, 'com.atproto.admin.deleteAccount', { json: { did: gone.did }, headers: admin })
  await asleep.call('com.atproto.server.deactivateAccount', { json: {} })
  const takedown = {
    subject: { $type: 'com.atproto.admin.defs#repoRef', did: down.did },
    takedown: { applied: true, ref: 'x' },
  }
  await xrpc(pds, 'com.atproto.admin.updateSubjectStatus', { json: takedown, headers: admin })
  const spent = sessionRequest(pds, alice)
  expect((await askSession(pds, spent)).status).toBe(200)
  const now = Math.floor(pds.clock.now() / 1000)
  line.arrived.length = 0
  const unsigned = {
    'an unknown account': sessionRequest(pds, { ...alice, did: 'did:plc:aaaaaaaaaaaaaaaaaaaaaaaa' }),
    'no DID': sessionRequest(pds, { ...alice, did: 'alice.test' }),
    'a deleted account': sessionRequest(pds, gone),
    'a deactivated account': sessionRequest(pds, asleep),
    'a taken-down account': sessionRequest(pds, down),
    'a clock that is behind': sessionRequest(pds, alice, { timestamp: now - 75 }),
    'a clock that is ahead': sessionRequest(pds, alice, { timestamp: now + 75 }),
    'a proof for another server': sessionRequest(pds, alice, { aud: 'did:web:other.test' }),
    'a proof for another account': { ...sessionRequest(pds, alice), did: gone.did },
    'a signature by another key': { ...sessionRequest(pds, { ...alice, device: other }), signingKey: alice.device.did },
    'another time than was signed': { ...sessionRequest(pds, alice), timestamp: now + 1 },
    'another nonce than was signed': { ...sessionRequest(pds, alice), nonce: spent.nonce },
    'a padded nonce': sessionRequest(pds, alice, { nonce: `${spent.nonce}=` }),
    'no key': { ...sessionRequest(pds, alice), signingKey: 'did:key:zDnaNOKEY' },
  }
  const answers = new Map<string, string>()
  for (const [what, json] of Object.entries(unsigned)) answers.set(what, await wholeAnswer(json))
  expect(line.arrived).toEqual([])
  answers.set('a key that is not of the identity', await wholeAnswer(sessionRequest(pds, { ...alice, device: other })))
  answers.set('a proof that was used', await wholeAnswer(spent))
  expect(line.arrived.map(({ path }) => path)).toEqual([`/${alice.did}/log/audit`, `/${alice.did}/log/audit`])
  expect(new Set(answers.values()).size).toBe(1)
  expect([...answers.values()][0]).toEndWith(REFUSAL)
  expect([...answers.values()][0]).toStartWith('401 ')
})

async function wholeAnswer(json: unknown): Promise<string> {
  const response = await fetch(`${pds.url}/v1/sessions/sovereign`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(json),
  })
  const headers = [...response.headers].filter(([name]) => name !== 'date').map(([name, value]) => `${name}: ${value}`)
  return [response.status, ...headers, await response.text()].join(' \n')
}

test('a proof opens one session, however often and wherever it is sent again', async () => {
  const cho = await sovereignAccount(pds, 'cho', { password: undefined })
  const before = await sessionsOf(cho.did)
  const proof = sessionRequest(pds, cho)
  const together = await Promise.all(Array.from({ length: 8 }, () => askSession(pds, proof)))
  expect(together.map(({ status }) => status).toSorted()).toEqual([200, 401, 401, 401, 401, 401, 401, 401])
  await pds.restart()
  expect((await askSession(pds, proof)).status).toBe(401)
  expect(await pds.runSweep('proof-nonces')).toMatchObject({ deleted: 0 })
  expect((await askSession(pds, proof)).status).toBe(401)
  expect(await sessionsOf(cho.did)).toBe(before + 1)
  pds.clock.advance({ secs: 3601 })
  await pds.runSweep('proof-nonces')
  expect((await askSession(pds, proof)).status).toBe(401)
})

test('the nonce of one account is another one of another account', async () => {
  const [dan, eve] = [await sovereignAccount(pds, 'dan'), await sovereignAccount(pds, 'eve')]
  const { nonce } = sessionRequest(pds, dan)
  expect((await signIn(dan, { nonce })).status).toBe(200)
  expect((await signIn(eve, { nonce })).status).toBe(200)
  expect((await signIn(dan, { nonce })).status).toBe(401)
})

test('proofs that arrive together share reads of the directory, and each gets a session', async () => {
  const fay = await sovereignAccount(pds, 'fay')
  line.arrived.length = 0
  // The directory takes its time with the first, until somebody who came after all of them was refused.
  const { promise: held, resolve: release } = Promise.withResolvers<void>()
  line.fate = () => held.then(() => 'answered')
  const signedIn = Array.from({ length: 10 }, () => signIn(fay))
  expect((await signIn({ ...fay, did: 'did:plc:aaaaaaaaaaaaaaaaaaaaaaaa' })).status).toBe(401)
  release()
  expect(new Set((await Promise.all(signedIn)).map(({ status }) => status))).toEqual(new Set([200]))
  line.fate = () => 'answered'
  expect(line.arrived.length).toBeLessThan(10)
  line.arrived.length = 0
  await signIn(fay)
  expect(line.arrived).toHaveLength(1)
})

test('a key counts from the operation that adds it to the one that removes it', async () => {
  const gus = await sovereignAccount(pds, 'gus')
  const next = deviceKey()
  const withKey = (device: DeviceKey) => signIn({ ...gus, device })
  const publish = async (rotationKeys: string[]) => {
    const last = (await pds.ctx.plc.lastOperation(gus.did as Did))!
    await pds.ctx.plc.submit(gus.did as Did, signOperation(nextOperation(last, { rotationKeys })!, gus.device.key))
  }
  expect((await withKey(next)).status).toBe(401)
  await publish([gus.device.did, next.did])
  expect((await withKey(next)).status).toBe(200)
  await publish([gus.device.did])
  expect((await withKey(next)).status).toBe(401)
  expect((await withKey(gus.device)).status).toBe(200)
})

test('nobody signs in to an identity that was ended', async () => {
  const hal = await sovereignAccount(pds, 'hal')
  const last = (await pds.ctx.plc.lastOperation(hal.did as Did))!
  await pds.ctx.plc.submit(hal.did as Did, signOperation(tombstone(last), hal.device.key))
  expect((await signIn(hal)).status).toBe(401)
})

test('while the directory does not answer nothing is spent, and the same proof opens a session afterwards', async () => {
  const ida = await sovereignAccount(pds, 'ida')
  const before = await sessionsOf(ida.did)
  const proof = sessionRequest(pds, ida)
  line.fate = () => 'question lost'
  expect(await askSession(pds, proof)).toMatchObject({ status: 502, body: { error: { code: 'PLC_DIRECTORY_ERROR' } } })
  expect(await sessionsOf(ida.did)).toBe(before)
  line.fate = () => 'answered'
  expect((await askSession(pds, proof)).status).toBe(200)
})

test('an account that is deactivated while the directory is asked gets no session, and its proof stays unspent', async () => {
  const joe = await sovereignAccount(pds, 'joe')
  const proof = sessionRequest(pds, joe)
  line.fate = async () => {
    await joe.call('com.atproto.server.deactivateAccount', { json: {} })
    return 'answered' as const
  }
  const before = await sessionsOf(joe.did)
  expect(await wholeAnswer(proof)).toEndWith(REFUSAL)
  expect(await sessionsOf(joe.did)).toBe(before)
  line.fate = () => 'answered'
  await joe.call('com.atproto.server.activateAccount', { method: 'POST' })
  expect((await askSession(pds, proof)).status).toBe(200)
})

test('passwords and proofs are charged to one limit of the address, and bad bodies to it too', async () => {
  await using small = await startPds({ rateLimit: { createSessionPer5min: 4 } })
  using _ = atOneNode(small, 'the last request of a limit is counted, and each node may let one more through')
  const kim = await sovereignAccount(small, 'kim')
  expect((await askSession(small, sessionRequest(small, kim))).status).toBe(200)
  expect((await askSession(small, {})).status).toBe(422)
  await xrpc(small, 'com.atproto.server.createSession', {
    json: { identifier: kim.handle, password: 'wrong password' },
  })
  expect((await askSession(small, sessionRequest(small, kim))).headers.get('ratelimit-remaining')).toBe('0')
  const refused = await askSession(small, sessionRequest(small, kim))
  expect(refused).toMatchObject({ status: 429, body: { error: { code: 'RATE_LIMITED' } } })
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
  expect(
    (
      await xrpc(small, 'com.atproto.server.createSession', {
        json: { identifier: kim.handle, password: kim.password },
      })
    ).status,
  ).toBe(429)
})

test('a body is exactly the five members, each once', async () => {
  const whole = sessionRequest(pds, alice)
  const send = async (body: string, type = 'application/json') => {
    const init = { method: 'POST', headers: { 'content-type': type }, body }
    const answer = await request(`${pds.url}/v1/sessions/sovereign`, init)
    return `${answer.status} ${answer.body.error?.code}`
  }
  const strange: unknown[] = [
    { ...whole, scope: 'everything' },
    JSON.parse(`{"__proto__":1,${JSON.stringify(whole).slice(1)}`),
    null,
    [],
    [whole],
    'x',
    1,
  ]
  for (const name of Object.keys(whole) as (keyof typeof whole)[]) {
    const { [name]: value, ...rest } = whole
    strange.push(
      rest,
      { ...whole, [name]: null },
      { ...whole, [name]: [value] },
      { ...whole, [name]: { value } },
      { ...whole, [name]: true },
    )
    strange.push({ ...whole, [name]: typeof value === 'number' ? String(value) : 5 })
    const doubled = `{${JSON.stringify(name)}:${JSON.stringify(value)},${JSON.stringify(whole).slice(1)}`
    expect([name, await send(doubled)]).toEqual([name, '422 InvalidRequest'])
  }
  for (const timestamp of [whole.timestamp + 0.5, '1e400']) strange.push({ ...whole, timestamp })
  for (const json of strange) expect([json, await send(JSON.stringify(json))]).toEqual([json, '422 InvalidRequest'])
  expect(await send('')).toBe('422 InvalidRequest')
  expect(await send(JSON.stringify(whole).replace(/"timestamp":\d+/, '"timestamp":1e400'))).toBe('422 InvalidRequest')
  expect(await send(JSON.stringify(whole), 'text/plain')).toBe('415 InvalidRequest')
  expect(await send('{')).toBe('400 InvalidRequest')
  expect(await send(JSON.stringify(whole), 'application/vnd.wallet+json')).toBe('200 undefined')
  expect(line.arrived).toHaveLength(1)
})
