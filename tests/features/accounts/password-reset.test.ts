import { expect, spyOn, test } from 'bun:test'
import { createAccount, logIn, PASSWORD, xrpc } from '../../support/clients/account.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { ADMIN_TOKEN, startPds, type TestPds } from '../../support/servers/pds.ts'
import { lastCode } from '../../support/servers/mail.ts'
import { answerOf, OAuthClient } from '../../support/clients/oauth-client.ts'
import { useWorld } from '../../support/world.ts'
import { atOneNode } from '../../support/turns.ts'
import { until } from '../../support/until.ts'

const { pds } = useWorld({ config: { rateLimit: { enabled: false }, accounts: { passwordOptional: true } } })

const requestReset = (email: string) => xrpc(pds, 'com.atproto.server.requestPasswordReset', { json: { email } })
const reset = (token: string, password: string) =>
  xrpc(pds, 'com.atproto.server.resetPassword', { json: { token, password } })
const createSession = (identifier: string, password: string) =>
  xrpc(pds, 'com.atproto.server.createSession', { json: { identifier, password } })

test('the mailed code sets a new password, once, and ends the sessions', async () => {
  const alice = await createAccount(pds, 'alice')
  const made = (await alice.call('com.atproto.server.createAppPassword', { json: { name: 'kept' } })).body
  expect((await requestReset(alice.email.toUpperCase())).status).toBe(200)
  const code = await lastCode(pds, alice.email)
  expect((await reset(code.toLowerCase(), 'a new password')).status).toBe(200)
  expect((await createSession('alice.test', PASSWORD)).status).toBe(401)
  expect((await createSession('alice.test', 'a new password')).status).toBe(200)
  expect(
    (await xrpc(pds, 'com.atproto.server.refreshSession', { method: 'POST', headers: bearer(alice.refreshJwt) }))
      .status,
  ).toBe(400)
  await logIn(pds, alice, made.password)
  expect(await reset(code, 'another one')).toMatchObject({
    status: 400,
    body: { error: 'InvalidToken', message: 'Token is invalid' },
  })
})

test('codes that were mailed while the clock was ahead are void once it is right, and keep no other from being mailed', async () => {
  const rosa = await createAccount(pds, 'rosa')
  const codes: string[] = []
  pds.clock.jump({ days: 365 })
  for (let count = 1; count <= 5; count++) {
    expect((await requestReset(rosa.email)).status).toBe(200)
    codes.push(await lastCode(pds, rosa.email, count))
  }
  pds.clock.jump({ days: -365 })
  expect(await reset(codes[4]!, 'by an old code')).toMatchObject({ status: 400, body: { error: 'ExpiredToken' } })
  expect((await requestReset(rosa.email)).status).toBe(200)
  const code = await lastCode(pds, rosa.email, 6)
  expect(codes).not.toContain(code)
  expect((await reset(code, 'a new password')).status).toBe(200)
})

/** The next comparison with a password waits, after it has read what to compare with, for something else to happen. */
function duringComparison(field: 'hash' | 'personalDetails', happen: () => Promise<unknown>): void {
  const { db } = pds.ctx
  const [get, all] = [db.get.bind(db), db.all.bind(db)]
  const reads = [spyOn(db, 'get'), spyOn(db, 'all')] as const
  const pauseAt = async (row: unknown) => {
    if (typeof row !== 'object' || row === null || !Object.hasOwn(row, field)) return
    for (const read of reads) read.mockRestore()
    await happen()
  }
  reads[0].mockImplementation(async <Row>(query: Parameters<typeof get>[0]): Promise<Row | null> => {
    const row = await get<Row>(query)
    await pauseAt(row)
    return row
  })
  reads[1].mockImplementation(async <Row>(query: Parameters<typeof all>[0]): Promise<Row[]> => {
    const rows = await all<Row>(query)
    await pauseAt(rows[0])
    return rows
  })
}

test('whoever is signing in with the old password, or an app password that is revoked, comes too late', async () => {
  using _ = atOneNode(pds, 'a part of the server is replaced')
  const walt = await createAccount(pds, 'walt')
  let password = PASSWORD
  let resets = 0
  const resetMeanwhile = async () => {
    await requestReset(walt.email)
    const code = await lastCode(pds, walt.email, ++resets)
    duringComparison('hash', async () => expect((await reset(code, (password += '!'))).status).toBe(200))
  }
  await resetMeanwhile()
  expect(await createSession(walt.handle, password)).toMatchObject({
    status: 401,
    body: { error: 'AuthenticationRequired', message: 'Invalid identifier or password' },
  })

  const app = new OAuthClient(pds)
  const requestUri = await app.requestUri()
  await resetMeanwhile()
  const refused = await app.decide(requestUri, { identifier: walt.handle, password }, { remember: 'yes' })
  expect([refused.status, refused.headers.has('set-cookie')]).toEqual([401, false])
  expect(answerOf(await app.decide(requestUri, { identifier: walt.handle, password })).has('code')).toBe(true)

  await resetMeanwhile()
  const entered = await request(`${pds.url}/account/sign-in`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ identifier: walt.handle, password }).toString(),
  })
  expect([entered.status, entered.headers.has('set-cookie')]).toEqual([401, false])

  const holder = await logIn(pds, walt, password)
  const made = (await holder.call('com.atproto.server.createAppPassword', { json: { name: 'lost' } })).body
  duringComparison('personalDetails', () =>
    holder.call('com.atproto.server.revokeAppPassword', { json: { name: 'lost' } }),
  )
  expect((await createSession(walt.handle, made.password)).status).toBe(401)
})

test('whether an address has an account is not told', async () => {
  const bob = await createAccount(pds, 'bob')
  const [known, unknown] = [await requestReset(bob.email), await requestReset('nobody@example.com')]
  expect([unknown.status, unknown.body]).toEqual([known.status, known.body])
  await lastCode(pds, bob.email)
  expect(pds.mails.some(({ to }) => to === 'nobody@example.com')).toBe(false)
})

/** The codes in the mails to an address, the oldest first. */
const codesTo = (email: string, { mails }: Pick<TestPds, 'mails'> = pds): string[] =>
  mails.filter(({ to }) => to === email).flatMap(({ text }) => /^[A-Z2-7]{5}-[A-Z2-7]{5}$/m.exec(text)?.[0] ?? [])

test('a stranger who asks again and again voids no code, and all are void once one is used', async () => {
  const frank = await createAccount(pds, 'frank')
  for (let asked = 0; asked < 12; asked++) {
    await requestReset(frank.email)
    await pds.runSteps()
  }
  const codes = codesTo(frank.email)
  expect(codes).toHaveLength(5)
  expect((await reset(codes[0]!, 'what I wanted')).status).toBe(200)
  for (const code of codes) expect((await reset(code, 'what they want')).status).toBe(400)
})

test('who is asked for hour after hour, from everywhere, gets a bounded number of mails, and has a code that works', async () => {
  await using limited = await startPds()
  const grace = await createAccount(limited, 'grace')
  // One that is not confirmed gets less: `unconfirmed-address.test.ts`.
  await limited.damage('account', { did: grace.did }, { email_confirmed_at: 1 })
  const codes = () => codesTo(grace.email, limited)
  let asked = 0
  const ask = async () => {
    asked++
    const headers = { 'x-forwarded-for': `${20 + (asked % 50)}.${asked % 250}.7.9` }
    const json = { email: grace.email }
    const answer = await xrpc(limited, 'com.atproto.server.requestPasswordReset', { json, headers })
    expect(answer.status).toBe(200)
    await limited.runSteps()
  }
  for (let hours = 0; hours < 8; hours++)
    for (let quarters = 0; quarters < 4; quarters++) {
      for (let i = 0; i < 6; i++) await ask()
      limited.clock.advance({ secs: 15 * 60 + 1 })
    }
  expect(codes().length).toBeLessThan(8 * 4 + 20)
  await ask()
  const json = { token: codes().at(-1), password: 'my password' }
  expect((await xrpc(limited, 'com.atproto.server.resetPassword', { json })).status).toBe(200)
})

test('what an operator makes voids none that was mailed', async () => {
  const henry = await createAccount(pds, 'henry')
  await requestReset(henry.email)
  const code = await lastCode(pds, henry.email)
  const path = `${pds.url}/v1/admin/accounts/${henry.did}/reset-token`
  const made = await request(path, { method: 'POST', headers: bearer(ADMIN_TOKEN) })
  expect(made.status).toBe(200)
  expect((await reset(code, 'my password')).status).toBe(200)
  expect((await reset(made.body.token, 'another one')).status).toBe(400)
})

test('a refused password does not use the code up', async () => {
  const carol = await createAccount(pds, 'carol')
  await requestReset(carol.email)
  const code = await lastCode(pds, carol.email)
  for (const password of ['', 'seven c'])
    expect(await reset(code, password)).toMatchObject({
      status: 400,
      body: { message: 'Password too short. Minimum length is 8 characters.' },
    })
  expect(await reset(code, 'x'.repeat(257))).toMatchObject({
    status: 400,
    body: { message: 'Invalid password length.' },
  })
  expect((await reset(code, 'good enough')).status).toBe(200)
})

test('an expired code is called expired', async () => {
  const dave = await createAccount(pds, 'dave')
  await requestReset(dave.email)
  const code = await lastCode(pds, dave.email)
  pds.clock.advance({ secs: 15 * 60 + 1 })
  expect(await reset(code, 'too late')).toMatchObject({
    status: 400,
    body: { error: 'ExpiredToken', message: 'Token is expired' },
  })
  expect((await createSession('dave.test', PASSWORD)).status).toBe(200)
})

test('an account without a password gets one', async () => {
  const erin = await createAccount(pds, 'erin', { password: undefined })
  await requestReset(erin.email)
  expect((await reset(await lastCode(pds, erin.email), 'my first')).status).toBe(200)
  expect((await createSession('erin.test', 'my first')).status).toBe(200)
})

test('an address that no account can have is answered like any other, and leaves no work that fails', async () => {
  // Accounts of tests before are told of what happened to them, which may take a moment.
  const work = async () => (await pds.rows('step')).filter(({ key }) => key?.startsWith('notice ') !== true)
  await until(async () => {
    await pds.runSteps()
    return (await work()).length === 0
  })
  for (const email of ['a\0b@example.com', '\0', 'a'.repeat(5000), ' ', '\ufffd@example.com']) {
    expect([email, (await requestReset(email)).status]).toEqual([email, 200])
    await pds.runSteps()
    expect([email, await work()]).toEqual([email, []])
  }
})
