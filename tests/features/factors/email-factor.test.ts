import { AtpAgent, ComAtprotoServerCreateSession } from '@atproto/api'
import { beforeEach, expect, test } from 'bun:test'
import { createAccount, PASSWORD, xrpc, type TestAccount } from '../../support/clients/account.ts'
import { request } from '../../support/clients/http.ts'
import { hiddenFields, OAuthClient } from '../../support/clients/oauth-client.ts'
import { CookieBrowser } from '../../support/clients/wallet-sign-in.ts'
import { lastCode, noticesTo } from '../../support/servers/mail.ts'
import { useWorld } from '../../support/world.ts'
import { errorOf, thrownBy } from '../../support/thrown.ts'

let alice: TestAccount
let names = 0
const { pds } = useWorld({ config: { rateLimit: { enabled: false } } })
beforeEach(async () => {
  alice = await createAccount(pds, `factor${++names}`)
})

const codes = () =>
  pds.mails.filter(({ to, text }) => to === alice.email && /^[A-Z2-7]{5}-[A-Z2-7]{5}$/m.test(text)).length
/** Does what has a code mailed, and returns the code. */
async function mailed(ask: () => Promise<unknown>): Promise<string> {
  const before = codes()
  await ask()
  return lastCode(pds, alice.email, before + 1)
}

async function confirm(): Promise<void> {
  const token = await mailed(() => alice.call('com.atproto.server.requestEmailConfirmation', { method: 'POST' }))
  await alice.call('com.atproto.server.confirmEmail', { json: { email: alice.email, token } })
}
const update = (json: object) => alice.call('com.atproto.server.updateEmail', { json: { email: alice.email, ...json } })
async function turnOn(): Promise<void> {
  await confirm()
  expect(await update({ emailAuthFactor: true })).toMatchObject({ status: 200 })
}
const session = async () => (await alice.call('com.atproto.server.getSession')).body
const signIn = (json: object = {}) =>
  xrpc(pds, 'com.atproto.server.createSession', { json: { identifier: alice.did, password: PASSWORD, ...json } })
const refused = { status: 401, body: { error: 'AuthFactorTokenRequired' } }

test('a real client turns the mailed code on, signs in with it, and turns it off', async () => {
  await confirm()
  const agent = new AtpAgent({ service: pds.url })
  const login = { identifier: alice.handle, password: PASSWORD }
  await agent.login(login)
  expect(agent.session).toMatchObject({ emailConfirmed: true })
  expect(agent.session!.emailAuthFactor).toBeUndefined()
  await agent.com.atproto.server.updateEmail({ email: alice.email, emailAuthFactor: true })
  await agent.resumeSession(agent.session!)
  expect(agent.session).toMatchObject({ emailConfirmed: true, emailAuthFactor: true })

  const again = new AtpAgent({ service: pds.url })
  const code = await mailed(async () =>
    expect(await errorOf(again.login(login))).toBeInstanceOf(
      ComAtprotoServerCreateSession.AuthFactorTokenRequiredError,
    ),
  )
  await again.login({ ...login, authFactorToken: code })
  expect(again.session).toMatchObject({ did: alice.did, emailAuthFactor: true })

  expect(await thrownBy(again.com.atproto.server.updateEmail({ email: alice.email, emailAuthFactor: false }))).toThrow(
    'confirmation token required',
  )
  const token = await mailed(() => again.com.atproto.server.requestEmailUpdate())
  await again.com.atproto.server.updateEmail({ email: alice.email, emailAuthFactor: false, token })
  const { data } = await again.com.atproto.server.getSession()
  expect(data).toMatchObject({ email: alice.email, emailConfirmed: true })
  expect(data.emailAuthFactor).toBeUndefined()
  await new AtpAgent({ service: pds.url }).login(login)
  const subjects = (await noticesTo(pds, alice.email)).map(({ subject }) => subject)
  expect(subjects.filter((one) => one.includes('requires a code'))).toHaveLength(2)
})

test('a wrong password says nothing of the factor, and has no code mailed', async () => {
  await turnOn()
  const other = await createAccount(pds, `other${names}`)
  const before = codes()
  const wrong = { password: 'not it', authFactorToken: 'AAAAA-AAAAA' }
  const [one, two] = [await signIn(wrong), await signIn({ ...wrong, identifier: other.did })]
  expect([one.status, one.body]).toEqual([two.status, two.body])
  expect(one).toMatchObject({ status: 401, body: { error: 'AuthenticationRequired' } })
  expect(codes()).toBe(before)
})

test('a code opens one session, for a quarter of an hour, and dies of five wrong guesses', async () => {
  await turnOn()
  const first = await mailed(async () => expect(await signIn()).toMatchObject(refused))
  const results = await Promise.all([1, 2, 3].map(() => signIn({ authFactorToken: first })))
  expect(results.filter(({ status }) => status === 200)).toHaveLength(1)
  expect(results.find(({ status }) => status !== 200)).toMatchObject({
    status: 400,
    body: { error: 'InvalidToken', message: 'Token is invalid' },
  })
  const late = await mailed(signIn)
  pds.clock.advance({ secs: 15 * 60 + 1 })
  expect(await signIn({ authFactorToken: late })).toMatchObject({ status: 400, body: { error: 'ExpiredToken' } })
  const guessed = await mailed(signIn)
  for (let i = 0; i < 5; i++)
    expect(await signIn({ authFactorToken: 'AAAAA-AAAAA' })).toMatchObject({
      status: 400,
      body: { error: 'InvalidToken' },
    })
  expect(await signIn({ authFactorToken: guessed })).toMatchObject({ status: 400, body: { error: 'InvalidToken' } })
})

test('a code of another purpose, or of another account, is none', async () => {
  await turnOn()
  const token = await mailed(() => alice.call('com.atproto.server.requestEmailUpdate', { method: 'POST' }))
  expect(await signIn({ authFactorToken: token })).toMatchObject({ body: { error: 'InvalidToken' } })
  const code = await mailed(signIn)
  expect(await update({ emailAuthFactor: false, token: code })).toMatchObject({ body: { error: 'InvalidToken' } })
  alice = await createAccount(pds, `factor${++names}`)
  await turnOn()
  expect(await signIn({ authFactorToken: code })).toMatchObject({ body: { error: 'InvalidToken' } })
})

test('only a confirmed address is mailed codes, and a new one has to be confirmed first', async () => {
  expect(await update({ emailAuthFactor: true })).toMatchObject({ status: 400, body: { error: 'InvalidRequest' } })
  await turnOn()
  const email = `moved-${alice.email}`
  expect(await update({ email, emailAuthFactor: true })).toMatchObject({
    status: 400,
    body: { error: 'InvalidRequest' },
  })
  const token = await mailed(() => alice.call('com.atproto.server.requestEmailUpdate', { method: 'POST' }))
  expect(await update({ email, token })).toMatchObject({ status: 200 })
  expect(await session()).toMatchObject({ email, emailConfirmed: false })
  expect((await session()).emailAuthFactor).toBeUndefined()
  alice = { ...alice, email }
  expect(await signIn()).toMatchObject({ status: 200 })
  await confirm()
  expect(await session()).toMatchObject({ emailAuthFactor: true })
  expect(await signIn()).toMatchObject(refused)
})

test('an app password signs in without a code', async () => {
  await turnOn()
  const { body } = await alice.call('com.atproto.server.createAppPassword', { json: { name: 'phone' } })
  expect(await signIn({ password: body.password })).toMatchObject({ status: 200 })
})

test('the sign-in of wallets by address and password asks for the code too', async () => {
  await turnOn()
  const open = (json: object) =>
    request(`${pds.url}/v1/accounts/sessions`, { json: { email: alice.email, password: PASSWORD, ...json } })
  const code = await mailed(async () =>
    expect(await open({})).toMatchObject({ status: 401, body: { error: { code: 'AuthFactorTokenRequired' } } }),
  )
  expect(await open({ authFactorToken: code })).toMatchObject({ status: 200, body: { did: alice.did } })
})

// Pages

const person = () => ({ identifier: alice.handle, password: PASSWORD })
/** Enters the password, and returns the fields of the page that asks for the code, with the code. */
async function secondStep(browser: CookieBrowser) {
  let page = ''
  const code = await mailed(async () => {
    const { status, body } = await browser.send('/account/sign-in', person())
    expect(status).toBe(200)
    page = body
  })
  expect(page).not.toContain(PASSWORD)
  return { ...hiddenFields(page), factor_code: code }
}

test('the account page asks for the code on a second page', async () => {
  await turnOn()
  const browser = new CookieBrowser(pds)
  const fields = await secondStep(browser)
  expect(await browser.signedIn()).toBeNull()
  const wrong = await browser.send('/account/sign-in', { ...fields, factor_code: 'AAAAA-AAAAA' })
  expect(wrong.body).toContain('This code is wrong')
  expect(wrong.body).toContain('<a href="/account/sign-in">Cancel</a>')
  expect((await browser.send('/account/sign-in', fields)).headers.get('location')).toBe('/account')
  expect(await browser.signedIn()).toBe(alice.did)
})

test('the second page is good once, in the browser that entered the password, for ten minutes', async () => {
  await turnOn()
  const browser = new CookieBrowser(pds)
  const fields = await secondStep(browser)
  const thief = new CookieBrowser(pds)
  expect((await thief.send('/account/sign-in', fields)).body).toContain('Please sign in again')
  const both = await Promise.all([1, 2].map(() => browser.send('/account/sign-in', fields)))
  expect(both.filter(({ status }) => status === 303)).toHaveLength(1)
  expect((await browser.send('/account/sign-in', fields)).body).toContain('Please sign in again')
  const late = await secondStep(browser)
  pds.clock.advance({ secs: 10 * 60 + 1 })
  expect((await browser.send('/account/sign-in', late)).body).toContain('Please sign in again')
})

test('a new password ends a sign-in that waits for its code', async () => {
  await turnOn()
  const browser = new CookieBrowser(pds)
  const fields = await secondStep(browser)
  const token = await mailed(() =>
    xrpc(pds, 'com.atproto.server.requestPasswordReset', { json: { email: alice.email } }),
  )
  const reset = { token, password: 'another horse altogether' }
  expect(await xrpc(pds, 'com.atproto.server.resetPassword', { json: reset })).toMatchObject({ status: 200 })
  expect((await browser.send('/account/sign-in', fields)).body).toContain('Please sign in again')
  expect(await browser.signedIn()).toBeNull()
})

test('another code replaces the one before', async () => {
  await turnOn()
  const browser = new CookieBrowser(pds)
  const fields = await secondStep(browser)
  const code = await mailed(() => browser.send('/account/sign-in', { ...fields, factor_again: 'yes' }))
  expect((await browser.send('/account/sign-in', fields)).body).toContain('This code is wrong')
  expect((await browser.send('/account/sign-in', { ...fields, factor_code: code })).status).toBe(303)
})

test('an app gets its code after the second page, for the scopes that were ticked on the first', async () => {
  await turnOn()
  const app = new OAuthClient(pds)
  const requestUri = await app.requestUri()
  const browser = new CookieBrowser(pds)
  const path = app.authorizeUrl(requestUri).slice(pds.url.length)
  const { body } = await browser.open(path)
  let page = ''
  const code = await mailed(async () => {
    const fields = { ...hiddenFields(body), ...person(), action: 'approve', granted_scope: 'transition:generic' }
    page = (await browser.send(path, fields)).body
  })
  const fields = { ...hiddenFields(page), factor_code: code }
  expect(fields).toMatchObject({ request_uri: requestUri, action: 'approve', granted_scope: 'transition:generic' })
  const back = /<a href="([^"]+)">Cancel<\/a>/.exec(page)![1]!.replaceAll('&amp;', '&')
  expect(hiddenFields((await browser.open(back)).body)).toMatchObject({ request_uri: requestUri })
  const answer = await browser.send(path, fields)
  expect(answer.status).toBe(303)
  const redeemed = await app.redeem(new URL(answer.headers.get('location')!).searchParams.get('code')!)
  expect(redeemed.body).toMatchObject({ sub: alice.did, scope: 'atproto transition:generic' })
})
