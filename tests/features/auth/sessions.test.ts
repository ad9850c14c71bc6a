import { AtpAgent } from '@atproto/api'
import { describe, expect, test } from 'bun:test'
import { createAccount, logIn, PASSWORD, xrpc } from '../../support/clients/account.ts'
import { bearer } from '../../support/clients/http.ts'
import { startPds, type TestPds } from '../../support/servers/pds.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'
import { atOneNode } from '../../support/turns.ts'
import { until } from '../../support/until.ts'

const { pds } = useWorld({ config: { rateLimit: { enabled: false } } })
const alice = setUp(() => createAccount(pds, 'alice'))

const createSession = (json: object, on: Pick<TestPds, 'url'> = pds) =>
  xrpc(on, 'com.atproto.server.createSession', { json })
const refresh = (token: string, on: Pick<TestPds, 'url'> = pds) =>
  xrpc(on, 'com.atproto.server.refreshSession', { method: 'POST', headers: bearer(token) })
const tokenId = (jwt: string): string => JSON.parse(Buffer.from(jwt.split('.')[1]!, 'base64url').toString()).jti

test('a real client logs in, resumes and logs out', async () => {
  const agent = new AtpAgent({ service: pds.url })
  await agent.login({ identifier: 'alice.test', password: PASSWORD })
  expect(agent.session).toMatchObject({
    did: alice.did,
    handle: 'alice.test',
    email: alice.email,
    emailConfirmed: false,
    active: true,
  })
  const resumed = new AtpAgent({ service: pds.url })
  await resumed.resumeSession(agent.session!)
  expect((await resumed.com.atproto.server.getSession()).data.did).toBe(alice.did)
  const { refreshJwt } = agent.session!
  await agent.logout()
  expect(await refresh(refreshJwt)).toMatchObject({
    status: 400,
    body: { error: 'ExpiredToken', message: 'Token has been revoked' },
  })
})

test('handle, DID and address name the account, whatever their case', async () => {
  for (const identifier of ['ALICE.test', alice.did, alice.email.toUpperCase()]) {
    expect(await createSession({ identifier, password: PASSWORD })).toMatchObject({
      status: 200,
      body: { did: alice.did },
    })
  }
})

test('a password is stored as argon2id at the recommended cost, and opens the account', async () => {
  await using costly = await startPds({}, { passwordCost: undefined })
  const { did } = await createAccount(costly, 'alice')
  const [row] = await costly.rows('account', { did })
  expect(row!.password_hash).toStartWith('$argon2id$v=19$m=19456,t=2,p=1$')
  expect(await createSession({ identifier: did, password: PASSWORD }, costly)).toMatchObject({ status: 200 })
  expect(await createSession({ identifier: did, password: 'not it' }, costly)).toMatchObject({ status: 401 })
})

test('an unknown account and a wrong password cannot be told apart', async () => {
  const wrong = await createSession({ identifier: 'alice.test', password: 'not it' })
  const unknown = await createSession({ identifier: 'nobody.test', password: 'not it' })
  const nonsense = await createSession({ identifier: '\u0000', password: 'not it' })
  expect(wrong).toMatchObject({
    status: 401,
    body: { error: 'AuthenticationRequired', message: 'Invalid identifier or password' },
  })
  expect([unknown.status, unknown.body]).toEqual([wrong.status, wrong.body])
  expect([nonsense.status, nonsense.body]).toEqual([wrong.status, wrong.body])
  expect(await createSession({ identifier: 'alice.test', password: 'x'.repeat(513) })).toMatchObject({
    status: 401,
    body: { error: 'AuthenticationRequired', message: 'Password too long. Consider resetting your password.' },
  })
})

test('five failures block an identifier for a minute, however fast they come, and a login forgives them', async () => {
  await using other = await startPds({ rateLimit: { enabled: false } })
  await createAccount(other, 'bob')
  const guess = (password: string, identifier = 'bob.test') => createSession({ identifier, password }, other)

  for (let i = 0; i < 4; i++) expect((await guess('wrong')).status).toBe(401)
  expect((await guess(PASSWORD)).status).toBe(200)

  const guesses = await Promise.all(Array.from({ length: 12 }, () => guess('wrong')))
  expect(guesses.filter(({ status }) => status === 401)).toHaveLength(5)
  expect(guesses.filter(({ status }) => status === 429)).toHaveLength(7)
  expect(await guess(PASSWORD)).toMatchObject({ status: 429, body: { error: 'RateLimitExceeded' } })
  expect((await guess(PASSWORD, 'BOB.test')).status).toBe(429)

  other.clock.advance({ secs: 61 })
  expect((await guess(PASSWORD)).status).toBe(200)
})

describe('while failures from elsewhere block an identifier', () => {
  const HOME = '203.0.113.7'
  const HOME_LATER = '203.0.113.200'
  const STRANGER = '198.51.100.1'
  const OTHER_STRANGER = '192.0.2.1'
  const guess = (password: string, address: string, identifier: string) =>
    xrpc(pds, 'com.atproto.server.createSession', {
      json: { identifier, password },
      headers: { 'x-forwarded-for': address },
    })
  let names = 0
  /** An account that was signed in to from `HOME`, and whose handle `STRANGER` has blocked. */
  const blockedAccount = async () => {
    const { did, handle } = await createAccount(pds, `blocked${++names}`)
    expect((await guess(PASSWORD, HOME, handle)).status).toBe(200)
    await until(async () => (await pds.count('known_place', { did })) === 2)
    for (let i = 0; i < 5; i++) expect((await guess('wrong', STRANGER, handle)).status).toBe(401)
    return handle
  }

  test('the holder signs in from a network from which the account was opened before, and nobody else does', async () => {
    const handle = await blockedAccount()
    for (const address of [STRANGER, OTHER_STRANGER]) expect((await guess(PASSWORD, address, handle)).status).toBe(429)
    expect((await guess(PASSWORD, HOME_LATER, handle)).status).toBe(200)
    expect((await guess(PASSWORD, OTHER_STRANGER, handle)).status).toBe(429)
  })

  test('a wrong password does not tell whether the account is used in a network', async () => {
    const handle = await blockedAccount()
    const [known, unknown] = [await guess('wrong', HOME, handle), await guess('wrong', OTHER_STRANGER, handle)]
    expect(known).toMatchObject({ status: 429, body: { error: 'RateLimitExceeded' } })
    expect([unknown.status, unknown.body]).toEqual([known.status, known.body])
  })

  test('five failures from the known network block it too', async () => {
    const handle = await blockedAccount()
    await Promise.all(Array.from({ length: 12 }, () => guess('wrong', HOME, handle)))
    expect((await guess(PASSWORD, HOME, handle)).status).toBe(429)
    pds.clock.advance({ secs: 61 })
    expect((await guess(PASSWORD, HOME, handle)).status).toBe(200)
  })
})

test('many right passwords at once all log in', async () => {
  const answers = await Promise.all(
    Array.from({ length: 8 }, () => createSession({ identifier: 'alice.test', password: PASSWORD })),
  )
  expect(answers.map(({ status }) => status)).toEqual(Array(8).fill(200))
})

test('whoever signs in beside a crowd from another network is not the last', async () => {
  // Hashing takes far longer than anything else that the test does, also on a busy machine.
  const passwordCost = { memoryKib: 19_456, passes: 4 }
  await using busy = await startPds({ rateLimit: { enabled: false } }, { passwordCost })
  using _ = atOneNode(busy, 'each node counts for itself')
  const { did } = await createAccount(busy, 'alice')
  const answered: string[] = []
  const signIn = async (name: string, identifier: string, address: string) => {
    await xrpc(busy, 'com.atproto.server.createSession', {
      json: { identifier, password: PASSWORD },
      headers: { 'x-forwarded-for': address },
    })
    answered.push(name)
  }
  const crowd = Array.from({ length: 24 }, (_, i) => signIn('crowd', `nobody${i}.test`, `198.51.100.${i}`))
  // On PostgreSQL, those who came first need not be the first in the queue.
  await Promise.race(crowd)
  const askedAfter = answered.length
  const other = signIn('other', did, '203.0.113.1')
  await Promise.all([...crowd, other])
  const waited = answered.slice(askedAfter)
  expect(waited.indexOf('other')).toBeLessThan(waited.length / 2)
})

test('refreshing gives new tokens, and the account', async () => {
  const session = await logIn(pds, alice, PASSWORD)
  const { status, body } = await refresh(session.refreshJwt)
  expect(status).toBe(200)
  expect(body).toMatchObject({ did: alice.did, handle: 'alice.test', email: alice.email, active: true })
  expect(tokenId(body.refreshJwt)).not.toBe(tokenId(session.refreshJwt))
  expect(await xrpc(pds, 'com.atproto.server.getSession', { headers: bearer(body.accessJwt) })).toMatchObject({
    status: 200,
  })
})

test('whoever lost the answer may ask again, and racing tabs agree on the successor', async () => {
  const session = await logIn(pds, alice, PASSWORD)
  const answers = await Promise.all(Array.from({ length: 5 }, () => refresh(session.refreshJwt)))
  expect(answers.map(({ status }) => status)).toEqual(Array(5).fill(200))
  expect(new Set(answers.map(({ body }) => tokenId(body.refreshJwt))).size).toBe(1)
  expect((await refresh(answers[0]!.body.refreshJwt)).status).toBe(200)
})

test('a token used once too often ends the session for everybody', async () => {
  await using other = await startPds()
  const bob = await createAccount(other, 'bob')
  const second = (await refresh(bob.refreshJwt, other)).body
  other.clock.advance({ secs: 2 * 3600 + 1 })
  expect(await refresh(bob.refreshJwt, other)).toMatchObject({
    status: 400,
    body: { error: 'ExpiredToken', message: 'Token has been revoked' },
  })
  expect(await refresh(second.refreshJwt, other)).toMatchObject({ status: 400, body: { error: 'ExpiredToken' } })
})

test('an older token than the previous one ends the session too', async () => {
  const first = (await logIn(pds, alice, PASSWORD)).refreshJwt
  const second = (await refresh(first)).body.refreshJwt
  const third = (await refresh(second)).body.refreshJwt
  expect((await refresh(first)).status).toBe(400)
  expect((await refresh(third)).status).toBe(400)
})

test('access tokens end after two hours, refresh tokens after ninety days, and an expired one may still log out', async () => {
  await using other = await startPds()
  const bob = await createAccount(other, 'bob')
  other.clock.advance({ secs: 7200 })
  expect(await bob.call('com.atproto.server.getSession')).toMatchObject({
    status: 400,
    body: { error: 'ExpiredToken', message: 'Token has expired' },
  })
  const { body } = await refresh(bob.refreshJwt, other)
  other.clock.advance({ days: 91 })
  expect(await refresh(body.refreshJwt, other)).toMatchObject({
    status: 400,
    body: { error: 'ExpiredToken', message: 'Token has expired' },
  })
  expect(
    (await xrpc(other, 'com.atproto.server.deleteSession', { method: 'POST', headers: bearer(body.refreshJwt) }))
      .status,
  ).toBe(200)
  expect(await other.runSweep('expired-sessions')).toEqual({ deleted: 0 })
})

test('sessions survive a restart, and expired ones are swept', async () => {
  await using other = await startPds()
  const bob = await createAccount(other, 'bob')
  await other.restart()
  expect((await bob.call('com.atproto.server.getSession')).status).toBe(200)
  expect((await refresh(bob.refreshJwt, other)).status).toBe(200)
  other.clock.advance({ days: 91 })
  expect(await other.runSweep('expired-sessions')).toEqual({ deleted: 1 })
})

test('the header of a request is read strictly', async () => {
  const get = (authorization: string) => xrpc(pds, 'com.atproto.server.getSession', { headers: { authorization } })
  expect(await xrpc(pds, 'com.atproto.server.getSession')).toMatchObject({
    status: 401,
    body: { error: 'AuthMissing', message: 'Authentication Required' },
  })
  const refused: [string, string][] = [
    ['Bearer', 'Malformed authorization header'],
    ['Bearer a b', 'Malformed authorization header'],
    ['Negotiate abc', 'Unsupported authorization type: Negotiate'],
    ['Basic YWxpY2U6eA==', 'Unexpected authorization type'],
    ['Bearer not-a-jwt', 'Token could not be verified'],
    [`Bearer ${alice.refreshJwt}`, 'Token could not be verified'],
  ]
  for (const [authorization, message] of refused)
    expect(await get(authorization)).toMatchObject({ status: 400, body: { error: 'InvalidToken', message } })
  expect((await get(`bEaReR ${alice.accessJwt}`)).status).toBe(200)
  expect(await get(`DPoP ${alice.accessJwt}`)).toMatchObject({ status: 401 })
  expect(await refresh(alice.accessJwt)).toMatchObject({
    status: 400,
    body: { error: 'InvalidToken', message: 'Token could not be verified' },
  })
})

test('answers to an account holder are private', async () => {
  const { headers } = await alice.call('com.atproto.server.getSession')
  expect(headers.get('cache-control')).toBe('private')
  expect(headers.get('vary')).toContain('Authorization')
})
