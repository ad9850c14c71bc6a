import { beforeEach, expect, test } from 'bun:test'
import { createAccount, PASSWORD, xrpc } from '../../support/clients/account.ts'
import { appOn, codesOn, FactorHolder } from '../../support/clients/factor-holder.ts'
import { basic } from '../../support/clients/http.ts'
import { hiddenFields, OAuthClient } from '../../support/clients/oauth-client.ts'
import { CookieBrowser } from '../../support/clients/wallet-sign-in.ts'
import { lastCode, noticesTo } from '../../support/servers/mail.ts'
import { ADMIN_TOKEN, startPds, type TestPds } from '../../support/servers/pds.ts'
import { beforeLock } from '../../support/interruptions.ts'
import { useWorld } from '../../support/world.ts'

let alice: FactorHolder
let names = 0
const { pds } = useWorld({ config: { rateLimit: { enabled: false } } })
beforeEach(async () => {
  alice = await setUpApp(pds, `app${++names}`)
})

async function setUpApp(on: TestPds, name: string): Promise<FactorHolder> {
  const holder = new FactorHolder(on, await createAccount(on, name))
  await holder.signIn()
  await holder.addApp()
  return holder
}

const login = (json: object = {}, on: TestPds = pds) =>
  xrpc(on, 'com.atproto.server.createSession', {
    json: { identifier: alice.account.did, password: PASSWORD, ...json },
  })
const invalid = { status: 400, body: { error: 'InvalidToken' } }
const subjects = async () => (await noticesTo(pds, alice.account.email)).map(({ subject }) => subject)

test('an app that was set up on the page opens the account, each code once', async () => {
  expect(await login()).toMatchObject({ status: 401, body: { error: 'AuthFactorTokenRequired' } })
  expect(pds.mails.some(({ to, subject }) => to === alice.account.email && subject.startsWith('Sign-in code'))).toBe(
    false,
  )
  const code = alice.nextCode()
  const answers = await Promise.all([1, 2, 3].map(() => login({ authFactorToken: code })))
  expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 400, 400])
  expect(await login({ authFactorToken: code })).toMatchObject(invalid)
  expect(await subjects()).toEqual([expect.stringContaining('An authenticator app was added')])
})

test('the code that confirmed the app opens nothing', async () => {
  expect(await login({ authFactorToken: alice.code() })).toMatchObject(invalid)
})

test('clocks may differ by one step, and no step counts after a later one', async () => {
  pds.clock.advance({ secs: 300 })
  for (const steps of [-3, -2, 2, 3]) expect(await login({ authFactorToken: alice.code(steps) })).toMatchObject(invalid)
  expect(await login({ authFactorToken: alice.code(1) })).toMatchObject({ status: 200 })
  for (const steps of [-1, 0, 1]) expect(await login({ authFactorToken: alice.code(steps) })).toMatchObject(invalid)
  pds.clock.advance({ secs: 60 })
  expect(await login({ authFactorToken: alice.code(-1) })).toMatchObject(invalid)
  expect(await login({ authFactorToken: ` ${alice.code().slice(0, 3)} ${alice.code().slice(3)}` })).toMatchObject({
    status: 200,
  })
})

test('eight wrong codes in an hour close the second factor, wherever they come from', async () => {
  const wrong = ['000000', 'aaaa-aaaa-aaaa-aaaa', 'x', '0'.repeat(1000)]
  const answers = await Promise.all(Array.from({ length: 12 }, (_, i) => login({ authFactorToken: wrong[i % 4] })))
  expect(answers.filter(({ status }) => status === 400)).toHaveLength(8)
  expect(answers.filter(({ status }) => status === 429)).toHaveLength(4)
  expect(await login({ authFactorToken: alice.nextCode() })).toMatchObject({ status: 429 })
  expect((await alice.signIn(alice.nextCode(), new CookieBrowser(pds))).body).toContain('Too many wrong codes')
  expect(await login({ authFactorToken: alice.recoveryCodes[0] })).toMatchObject({ status: 429 })
  expect(await subjects()).toContainEqual(expect.stringContaining('Someone entered wrong codes'))
  pds.clock.advance({ secs: 60 * 60 })
  expect(await login({ authFactorToken: alice.nextCode() })).toMatchObject({ status: 200 })
})

test('wrong codes are counted on that a node counted whose clock is ahead', async () => {
  const { did } = alice.account
  for (let i = 0; i < 7; i++) expect(await login({ authFactorToken: '000000' })).toMatchObject(invalid)
  await pds.damage('factor_failure', { did }, { until: pds.clock.now() + 3_660_000 })
  expect(await login({ authFactorToken: '000000' })).toMatchObject(invalid)
  expect(await login({ authFactorToken: alice.nextCode() })).toMatchObject({ status: 429 })
  pds.clock.advance({ secs: 3660 })
  expect(await login({ authFactorToken: alice.nextCode() })).toMatchObject({ status: 200 })
})

test('a wrong code of an account that has been deleted meanwhile is not stored', async () => {
  await using other = await startPds({}, { alone: 'the test replaces a part of the server' })
  const { account } = await setUpApp(other, 'leaving')
  const { did } = account
  using _ = beforeLock(other, did, () =>
    xrpc(other, 'com.atproto.admin.deleteAccount', { json: { did }, headers: basic('admin', ADMIN_TOKEN) }),
  )
  expect(await login({ identifier: did, authFactorToken: '000000' }, other)).toMatchObject(invalid)
  expect(await other.count('account', { did })).toBe(0)
  expect(await other.count('factor_failure', { did })).toBe(0)
})

test('a wrong password with a right code is a wrong password, and does not use up the code', async () => {
  const authFactorToken = alice.nextCode()
  const other = await createAccount(pds, `none${names}`)
  const [one, two] = [
    await login({ password: 'not it', authFactorToken }),
    await login({ password: 'not it', authFactorToken, identifier: other.did }),
  ]
  expect([one.status, one.body]).toEqual([two.status, two.body])
  expect(await login({ authFactorToken })).toMatchObject({ status: 200 })
})

test('a recovery code opens the account once, in whatever way it is typed', async () => {
  const [first, second] = alice.recoveryCodes
  const typed = first!.toUpperCase().replaceAll('-', ' ')
  expect(await login({ authFactorToken: typed })).toMatchObject({ status: 200 })
  expect(await login({ authFactorToken: first })).toMatchObject(invalid)
  expect((await alice.signIn(second, new CookieBrowser(pds))).headers.get('location')).toBe('/account')
  expect((await alice.browser.open(alice.path)).body).toContain('You have 8 recovery codes left')
  expect(await subjects()).toContainEqual(expect.stringContaining('A recovery code was used'))
})

test('recovery codes of another account open nothing, and new ones replace the old', async () => {
  const [old] = alice.recoveryCodes
  const made = codesOn((await alice.changeWith('new-codes', alice.nextCode())).body)
  expect(made).toHaveLength(10)
  expect(await login({ authFactorToken: old })).toMatchObject(invalid)
  const bob = new FactorHolder(pds, await createAccount(pds, `bob${names}`))
  await bob.signIn()
  await bob.addApp()
  expect(await login({ authFactorToken: bob.recoveryCodes[0] })).toMatchObject(invalid)
  expect(await login({ authFactorToken: made[0] })).toMatchObject({ status: 200 })
})

test('a session alone changes no factor: that takes the password and a code', async () => {
  const { body } = await alice.change('remove-app')
  expect(body).toContain('Enter the code that your authenticator app shows')
  const fields = hiddenFields(body)
  expect((await alice.browser.send(alice.path, { ...fields, factor_code: '000000' })).body).toContain('code is wrong')
  expect(await login()).toMatchObject({ body: { error: 'AuthFactorTokenRequired' } })
  const wrong = await alice.browser.send(alice.path, { ...fields, factor_step: 'x', factor_code: alice.nextCode() })
  expect(wrong.body).toContain('Please sign in again')
  const done = await alice.browser.send(alice.path, { ...fields, factor_code: alice.nextCode() })
  expect(done.headers.get('location')).toContain('done=app-removed')
  expect(await login()).toMatchObject({ status: 200 })
  expect(await login({ authFactorToken: alice.recoveryCodes[0] })).toMatchObject({ status: 200 })
  expect(await pds.count('factor_recovery_code', { did: alice.account.did })).toBe(0)
  expect(await subjects()).toContainEqual(expect.stringContaining('was removed'))
})

test('the password of one account proves nothing for another that is signed in beside it', async () => {
  const bob = new FactorHolder(pds, await createAccount(pds, `beside${names}`))
  await bob.signIn('', alice.browser)
  const pending = await bob.browser.send('/account/sign-in', { identifier: bob.account.did, password: PASSWORD })
  expect(pending.status).toBe(303)
  const { body } = await alice.browser.open(alice.path)
  const { form_token = '' } = hiddenFields(body)
  const form = { account: alice.account.did, form_token, change: 'remove-app', identifier: bob.account.did }
  expect((await alice.browser.send(alice.path, { ...form, password: 'not it' })).body).toContain('password is wrong')
  expect(await login()).toMatchObject({ body: { error: 'AuthFactorTokenRequired' } })
})

test('the key is shown once, and an app that was never confirmed asks for nothing', async () => {
  await alice.changeWith('remove-app', alice.nextCode())
  const { body } = await alice.change('add-app')
  alice.app = appOn(body)
  const wrong = await alice.browser.send(alice.path, { ...hiddenFields(body), code: '000000' })
  expect(wrong.body).toContain('This code is wrong')
  expect(wrong.body).not.toContain('otpauth:')
  expect(await login()).toMatchObject({ status: 200 })
  const made = await alice.browser.send(alice.path, { ...hiddenFields(wrong.body), code: alice.code() })
  expect(codesOn(made.body)).toHaveLength(10)
  expect((await alice.browser.open(alice.path)).body).not.toContain(codesOn(made.body)[0]!)
})

test('a set-up that was left open ends after an hour: its key confirms no app for a stolen session', async () => {
  await alice.changeWith('remove-app', alice.nextCode())
  const { body } = await alice.change('add-app')
  alice.app = appOn(body)
  pds.clock.advance({ secs: 60 * 60 })
  const sent = await alice.browser.send(alice.path, { ...hiddenFields(body), code: alice.code() })
  expect(sent.body).toContain('This code is wrong')
  expect(await login()).toMatchObject({ status: 200 })
  await alice.addApp()
  expect(await login()).toMatchObject({ body: { error: 'AuthFactorTokenRequired' } })
})

test('a set-up that began while the clock was ahead has ended once the clock was set back', async () => {
  await alice.changeWith('remove-app', alice.nextCode())
  pds.clock.jump({ secs: 1800 })
  const { body } = await alice.change('add-app')
  alice.app = appOn(body)
  pds.clock.jump({ secs: -1800 })
  const sent = await alice.browser.send(alice.path, { ...hiddenFields(body), code: alice.code() })
  expect(sent.body).toContain('This code is wrong')
  await alice.addApp()
  expect(await login()).toMatchObject({ body: { error: 'AuthFactorTokenRequired' } })
})

test('a stolen session guesses neither the code of an app that is being set up, nor closes the factor', async () => {
  const { body } = await alice.browser.open(alice.path)
  const { form_token = '' } = hiddenFields(body)
  const form = { account: alice.account.did, form_token, change: 'confirm-app' }
  const guess = (code = '000000') => alice.browser.send(alice.path, { ...form, code })
  for (let tries = 0; tries < 9; tries++) expect((await guess()).body).toContain('This code is wrong')
  await alice.changeWith('remove-app', alice.nextCode())
  alice.app = appOn((await alice.change('add-app')).body)
  for (let tries = 0; tries < 8; tries++) expect((await guess()).body).toContain('This code is wrong')
  expect((await guess(alice.code())).body).toContain('Too many wrong codes')
  expect(await login()).toMatchObject({ status: 200 })
})

test('a clock that was wrong, and is set back, closes the second factor no longer than an hour', async () => {
  pds.clock.jump({ days: 1 })
  for (let tries = 0; tries < 8; tries++) await login({ authFactorToken: '000000' })
  const closed = await login({ authFactorToken: alice.recoveryCodes[0] })
  expect([closed.status, closed.headers.get('ratelimit-policy')]).toEqual([429, '8;w=3600'])
  pds.clock.jump({ days: -1 })
  expect(await login({ authFactorToken: '000000' })).toMatchObject(invalid)
  expect(await login({ authFactorToken: alice.recoveryCodes[0] })).toMatchObject({ status: 200 })
})

test('who reads the mail does not get past the app: neither a new password nor a mailed code does', async () => {
  const { account } = alice
  await account.call('com.atproto.server.requestEmailConfirmation', { method: 'POST' })
  const json = { email: account.email, token: await lastCode(pds, account.email) }
  await account.call('com.atproto.server.confirmEmail', { json })
  const on = { email: account.email, emailAuthFactor: true }
  expect(await account.call('com.atproto.server.updateEmail', { json: on })).toMatchObject({ status: 200 })
  await xrpc(pds, 'com.atproto.server.requestPasswordReset', { json: { email: account.email } })
  const reset = { token: await lastCode(pds, account.email, 2), password: 'the new password' }
  expect(await xrpc(pds, 'com.atproto.server.resetPassword', { json: reset })).toMatchObject({ status: 200 })
  const before = pds.mails.length
  expect(await login({ password: reset.password })).toMatchObject({ body: { error: 'AuthFactorTokenRequired' } })
  expect(pds.mails.slice(before).some(({ subject }) => subject.startsWith('Sign-in code'))).toBe(false)
  expect(await login({ password: reset.password, authFactorToken: reset.token })).toMatchObject(invalid)
  expect(await login({ password: reset.password, authFactorToken: alice.nextCode() })).toMatchObject({ status: 200 })
})

test('an app gets its code after the second page', async () => {
  const app = new OAuthClient(pds)
  const browser = new CookieBrowser(pds)
  const path = app.authorizeUrl(await app.requestUri()).slice(pds.url.length)
  const { body } = await browser.open(path)
  const person = { identifier: alice.account.handle, password: PASSWORD, action: 'approve' }
  const asked = await browser.send(path, { ...hiddenFields(body), ...person })
  const wrong = await browser.send(path, { ...hiddenFields(asked.body), factor_code: '000000' })
  const answer = await browser.send(path, { ...hiddenFields(wrong.body), factor_code: alice.nextCode() })
  const redeemed = await app.redeem(new URL(answer.headers.get('location')!).searchParams.get('code')!)
  expect(redeemed.body).toMatchObject({ sub: alice.account.did })
})
