import { beforeEach, expect, test } from 'bun:test'
import { createAccount, PASSWORD, xrpc } from '../../support/clients/account.ts'
import { FactorHolder } from '../../support/clients/factor-holder.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { hiddenFields } from '../../support/clients/oauth-client.ts'
import { CookieBrowser } from '../../support/clients/wallet-sign-in.ts'
import { ADMIN_TOKEN } from '../../support/servers/config.ts'
import { lastCode, noticesTo } from '../../support/servers/mail.ts'
import { startPds } from '../../support/servers/pds.ts'
import { useWorld } from '../../support/world.ts'

let alice: FactorHolder
let names = 0
const { pds } = useWorld({ config: { rateLimit: { enabled: false } } })
beforeEach(async () => {
  alice = new FactorHolder(pds, await createAccount(pds, `trust${++names}`))
  await alice.signIn()
  await alice.addApp()
})

const DAY_SECS = 24 * 60 * 60

/** Enters the password in a browser. Returns whether it was asked for a code. */
async function isAsked(
  browser: CookieBrowser,
  identifier = alice.account.handle,
  password = PASSWORD,
): Promise<boolean> {
  const { status, body } = await browser.send('/account/sign-in', { identifier, password })
  if (status !== 303 && !String(body).includes('One more step')) throw new Error(`neither: ${status} ${body}`)
  return status !== 303
}

/** Signs in with a code, with the box ticked. */
async function trust(browser: CookieBrowser): Promise<void> {
  const person = { identifier: alice.account.handle, password: PASSWORD }
  const { body } = await browser.send('/account/sign-in', person)
  const fields = { ...hiddenFields(body), factor_code: alice.nextCode(), factor_trust: 'yes' }
  expect((await browser.send('/account/sign-in', fields)).status).toBe(303)
}

test('a trusted browser is not asked for the code for 30 days', async () => {
  const browser = new CookieBrowser(pds)
  expect(await isAsked(browser)).toBe(true)
  await trust(browser)
  expect(await isAsked(browser)).toBe(false)
  expect(await isAsked(new CookieBrowser(pds))).toBe(true)
  pds.clock.advance({ secs: 30 * DAY_SECS - 60 })
  expect(await isAsked(browser)).toBe(false)
  pds.clock.advance({ secs: 120 })
  expect(await isAsked(browser)).toBe(true)
})

test('the trust is in one account, and needs its password', async () => {
  const browser = new CookieBrowser(pds)
  await trust(browser)
  const bob = new FactorHolder(pds, await createAccount(pds, `other${names}`))
  await bob.signIn()
  await bob.addApp()
  expect(await isAsked(browser, bob.account.handle)).toBe(true)
  const wrong = await browser.send('/account/sign-in', { identifier: alice.account.handle, password: 'not it' })
  expect(wrong.body).toContain('password is wrong')
})

/** Returns another browser with copies of the cookies. */
function copyOf(browser: CookieBrowser): CookieBrowser {
  const copy = new CookieBrowser(pds)
  for (const [name, value] of browser.cookies) copy.cookies.set(name, value)
  return copy
}

test('who shared the browser knows nothing by which another account trusts it', async () => {
  const browser = new CookieBrowser(pds)
  await trust(browser)
  const thief = copyOf(browser)
  alice = new FactorHolder(pds, await createAccount(pds, `shared${names}`))
  await alice.signIn()
  await alice.addApp()
  await trust(browser)
  expect(await isAsked(browser)).toBe(false)
  expect(await isAsked(thief)).toBe(true)
})

test('a trust that is given again has another secret', async () => {
  const browser = new CookieBrowser(pds)
  await trust(browser)
  const copy = copyOf(browser)
  pds.clock.advance({ days: 31 })
  await trust(browser)
  expect(await isAsked(browser)).toBe(false)
  expect(await isAsked(copy)).toBe(true)
  expect(await pds.count('trusted_browser', { did: alice.account.did })).toBe(1)
})

test('a trusted browser is asked before it changes factors', async () => {
  await trust(alice.browser)
  expect((await alice.change('remove-app')).body).toContain('One more step')
})

test('a trust is listed, and ended on the page', async () => {
  const browser = new CookieBrowser(pds)
  await trust(browser)
  const page = (await alice.browser.open(alice.path)).body as string
  expect(page).toContain('Trusted browsers')
  const [, id] = /name="id" value="([^"]+)"/.exec(page)!
  const { form_token = '' } = hiddenFields(page)
  const form = { account: alice.account.did, form_token, change: 'distrust', id: id! }
  expect((await alice.browser.send(alice.path, form)).status).toBe(303)
  expect(await isAsked(browser)).toBe(true)
})

test('a new password, and another app, end the trust', async () => {
  const browser = new CookieBrowser(pds)
  await trust(browser)
  await alice.changeWith('remove-app', alice.nextCode())
  await alice.addApp()
  expect(await isAsked(browser)).toBe(true)
  await trust(browser)
  await xrpc(pds, 'com.atproto.server.requestPasswordReset', { json: { email: alice.account.email } })
  const json = { token: await lastCode(pds, alice.account.email), password: 'the new password' }
  expect(await xrpc(pds, 'com.atproto.server.resetPassword', { json })).toMatchObject({ status: 200 })
  expect(await isAsked(browser, alice.account.handle, json.password)).toBe(true)
})

test('a sign-in that ended with a new password makes no browser trusted', async () => {
  const browser = new CookieBrowser(pds)
  const { body } = await browser.send('/account/sign-in', { identifier: alice.account.handle, password: PASSWORD })
  await xrpc(pds, 'com.atproto.server.requestPasswordReset', { json: { email: alice.account.email } })
  const json = { token: await lastCode(pds, alice.account.email), password: 'the new password' }
  await xrpc(pds, 'com.atproto.server.resetPassword', { json })
  const fields = { ...hiddenFields(body), factor_code: alice.nextCode(), factor_trust: 'yes' }
  expect((await browser.send('/account/sign-in', fields)).body).toContain('Please sign in again')
  expect(await isAsked(browser, alice.account.handle, json.password)).toBe(true)
})

// Lost factors

const reset = (headers: Record<string, string>) =>
  request(`${pds.url}/v1/admin/accounts/${alice.account.did}/reset-factors`, { json: {}, headers })
const login = () =>
  xrpc(pds, 'com.atproto.server.createSession', { json: { identifier: alice.account.did, password: PASSWORD } })

test('an operator alone removes lost factors, which is in the audit log, and the holder is mailed', async () => {
  expect(await reset(bearer(alice.account.accessJwt))).toMatchObject({ status: 401 })
  expect(await login()).toMatchObject({ body: { error: 'AuthFactorTokenRequired' } })
  expect(await reset(bearer(ADMIN_TOKEN))).toMatchObject({ status: 200, body: { hadFactors: true } })
  expect(await login()).toMatchObject({ status: 200 })
  expect(await reset(bearer(ADMIN_TOKEN))).toMatchObject({ status: 200, body: { hadFactors: false } })
  const { body } = await request(`${pds.url}/v1/admin/audit`, { headers: bearer(ADMIN_TOKEN) })
  expect(JSON.stringify(body)).toContain('factors_reset')
  const mails = await noticesTo(pds, alice.account.email)
  expect(mails.filter(({ subject }) => subject.startsWith('The second factors'))).toHaveLength(1)
})

test('a server may demand a factor of everyone: the one of the account, else a code from the mail', async () => {
  await using strict = await startPds({ rateLimit: { enabled: false }, accounts: { requireSecondFactor: true } })
  const bob = await createAccount(strict, 'bob')
  const enter = (json: object = {}) =>
    xrpc(strict, 'com.atproto.server.createSession', { json: { identifier: bob.did, password: PASSWORD, ...json } })
  expect(await enter()).toMatchObject({ status: 401, body: { error: 'AuthFactorTokenRequired' } })
  const code = await lastCode(strict, bob.email)
  expect(await enter({ authFactorToken: code })).toMatchObject({ status: 200 })
  const holder = new FactorHolder(strict, bob)
  const browser = new CookieBrowser(strict)
  expect((await holder.signIn('AAAAA-AAAAA', browser)).body).toContain('This code is wrong')
  expect(await browser.signedIn()).toBeNull()
})

test('a browser remembers which factor it was signed in with', async () => {
  const { did } = alice.account
  const passed = async () => (await pds.rows('oauth_device_account', { did })).map((row) => row.passed_factor)
  expect(await passed()).toEqual([null])
  const browser = new CookieBrowser(pds)
  await trust(browser)
  expect(await passed()).toContain('held')
  await isAsked(browser)
  expect(await passed()).toEqual([null, null])
})
