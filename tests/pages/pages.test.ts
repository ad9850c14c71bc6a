/** The pages in a real browser, without scripts: what a person reads, fills in and is led to. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import type { Browser, Page } from 'playwright-core'
import { createAccount, PASSWORD, type TestAccount } from '../harness/account.ts'
import { DESKTOP, freshPage, openBrowser, PHONE } from '../harness/browser.ts'
import { request } from '../harness/http.ts'
import { loopbackClientId, OAuthClient } from '../harness/oauth-client.ts'
import { startPds, type TestPds } from '../harness/pds.ts'

/** A browser on a busy machine takes its time. */
setDefaultTimeout(60_000)

/** Where to put pictures of the pages, for somebody to look at. */
const { SCREENSHOT_DIR } = process.env

let pds: TestPds
let browser: Browser
let alice: TestAccount
/** The app that the browser is sent back to: a server on this machine, on a port that nobody knew before. */
let app: ReturnType<typeof Bun.serve>

beforeAll(async () => {
  ;[pds, browser] = await Promise.all([startPds({ rateLimit: { enabled: false } }), openBrowser()])
  alice = await createAccount(pds, 'alice')
  app = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response('back in the app') })
})
afterEach(async () => {
  for (const context of browser.contexts()) await context.close()
})
afterAll(async () => {
  await browser.close()
  await app.stop(true)
  await pds[Symbol.asyncDispose]()
})

const SCOPE = 'atproto transition:generic transition:email repo:app.bsky.feed.post?action=create'
const newClient = () => new OAuthClient(pds, loopbackClientId(SCOPE, 'http://127.0.0.1/callback'), null, `http://127.0.0.1:${app.port}/callback`)

async function openRequest(page: Page, client: OAuthClient, changes: Record<string, string | undefined> = {}): Promise<void> {
  await page.goto(client.authorizeUrl(await client.requestUri({ scope: SCOPE, ...changes })))
}

async function signIn(page: Page, { handle, password }: Pick<TestAccount, 'handle' | 'password'> = alice): Promise<void> {
  await page.goto(`${pds.url}/account/sign-in`)
  await page.getByLabel('Handle or email address').fill(handle)
  await page.getByLabel('Password', { exact: true }).fill(password)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.waitForURL(`${pds.url}/account`)
}

const answerIn = (page: Page) => new URL(page.url()).searchParams
const scopeOf = async (client: OAuthClient, page: Page) => (await client.redeem(answerIn(page).get('code')!)).body.scope

test('a person reads what an app asks for, unticks some of it, and is led back', async () => {
  const page = await freshPage(browser)
  const client = newClient()
  await openRequest(page, client, { login_hint: alice.handle })
  expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe('Sign in to an app on this device?')
  expect(await page.getByLabel('Handle or email address').inputValue()).toBe(alice.handle)
  expect(await page.getByText('Create posts').count()).toBe(1)
  await page.getByRole('checkbox', { name: 'See your email address' }).uncheck()
  await page.getByLabel('Password', { exact: true }).fill(alice.password)
  await page.getByRole('button', { name: 'Allow access' }).click()
  await page.waitForURL(/\/callback/)
  expect(await page.textContent('body')).toBe('back in the app')
  expect(await scopeOf(client, page)).toBe('atproto transition:generic repo:app.bsky.feed.post?action=create')
})

test('the keyboard alone does, and Enter means yes', async () => {
  const page = await freshPage(browser, { viewport: DESKTOP })
  const client = newClient()
  await openRequest(page, client, { login_hint: alice.handle })
  await page.getByLabel('Password', { exact: true }).focus()
  await page.keyboard.type(alice.password)
  await page.keyboard.press('Enter')
  await page.waitForURL(/\/callback/)
  expect(answerIn(page).get('code')).toHaveLength(43)
})

test('saying no needs nothing filled in', async () => {
  const page = await freshPage(browser)
  await openRequest(page, newClient())
  await page.getByRole('button', { name: 'Deny' }).click()
  await page.waitForURL(/\/callback/)
  expect(answerIn(page).get('error')).toBe('access_denied')
})

test('a wrong password is told where it is mended, and what was unticked stays so', async () => {
  const page = await freshPage(browser)
  await openRequest(page, newClient(), { login_hint: alice.handle })
  await page.getByRole('checkbox', { name: 'Act for you' }).uncheck()
  await page.getByLabel('Password', { exact: true }).fill('not it')
  await page.getByRole('button', { name: 'Allow access' }).click()
  expect(await page.getByRole('alert').textContent()).toContain('not right')
  expect(await page.getByRole('checkbox', { name: 'Act for you' }).isChecked()).toBe(false)
  const password = page.getByLabel('Password', { exact: true })
  expect(await password.getAttribute('aria-invalid')).toBe('true')
  expect(await password.inputValue()).toBe('')
  expect(await password.evaluate('document.activeElement === document.getElementById("password")')).toBe(true)
})

test('who stays signed in chooses an account the next time, and needs no password for a week', async () => {
  const bob = await createAccount(pds, 'bob')
  const page = await freshPage(browser)
  await openRequest(page, newClient(), { login_hint: alice.handle })
  await page.getByLabel('Password', { exact: true }).fill(alice.password)
  await page.getByLabel('Stay signed in').check()
  await page.getByRole('button', { name: 'Allow access' }).click()
  await page.waitForURL(/\/callback/)
  const [cookie] = await page.context().cookies(pds.url)
  expect(cookie).toMatchObject({ name: 'holdfast', httpOnly: true, sameSite: 'Lax', path: '/' })

  const client = newClient()
  await openRequest(page, client)
  expect(await page.getByRole('radio', { name: '@alice.test' }).isChecked()).toBe(true)
  expect(await page.getByLabel('Password', { exact: true }).isVisible()).toBe(false)
  await page.getByRole('button', { name: 'Allow access' }).click()
  await page.waitForURL(/\/callback/)
  expect((await client.redeem(answerIn(page).get('code')!)).body.sub).toBe(alice.did)

  const other = newClient()
  await openRequest(page, other)
  await page.getByRole('radio', { name: 'Another account' }).check()
  await page.getByLabel('Handle or email address').fill(bob.handle)
  await page.getByLabel('Password', { exact: true }).fill(bob.password)
  await page.getByRole('button', { name: 'Allow access' }).click()
  await page.waitForURL(/\/callback/)
  expect((await other.redeem(answerIn(page).get('code')!)).body.sub).toBe(bob.did)

  await openRequest(page, newClient(), { prompt: 'login' })
  expect(await page.getByLabel('Password', { exact: true }).isVisible()).toBe(true)
  pds.clock.advance({ days: 8 })
  await openRequest(page, newClient())
  expect(await page.getByLabel('Password', { exact: true }).isVisible()).toBe(true)
  await page.getByRole('button', { name: 'Allow access' }).click()
  expect(await page.getByRole('alert').textContent()).toContain('Please enter')
})

test('somebody new makes an account on the way and comes back to the app', async () => {
  const page = await freshPage(browser)
  const client = newClient()
  await openRequest(page, client)
  await page.getByRole('link', { name: 'Create an account' }).click()
  await page.getByLabel('Handle').fill('alice')
  await page.getByLabel('Email address').fill('newcomer@example.com')
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD)
  await page.getByRole('button', { name: 'Create account' }).click()
  expect(await page.getByRole('alert').textContent()).toContain('already taken')
  expect(await page.getByLabel('Email address').inputValue()).toBe('newcomer@example.com')
  await page.getByLabel('Handle').fill('newcomer')
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD)
  await page.getByRole('button', { name: 'Create account' }).click()
  expect(await page.getByRole('radio', { name: '@newcomer.test' }).isChecked()).toBe(true)
  await page.getByRole('button', { name: 'Allow access' }).click()
  await page.waitForURL(/\/callback/)
  expect(answerIn(page).get('code')).toHaveLength(43)
})

test('a forgotten password is replaced with a code from the mail, which ends what was signed in', async () => {
  const carol = await createAccount(pds, 'carol')
  const client = newClient()
  const tokens = await client.signIn({ identifier: carol.handle, password: carol.password }, { scope: SCOPE })
  const page = await freshPage(browser)
  await signIn(page, carol)
  await page.goto(`${pds.url}/.well-known/change-password`)
  await page.getByLabel('Email address').fill(carol.email)
  await page.getByRole('button', { name: 'Send the code' }).click()
  expect(await page.getByRole('status').textContent()).toContain('on its way')
  const code = pds.mails.findLast(({ to }) => to === carol.email)!.text.split('\n').find((line) => /^\S{10,}$/.test(line))!
  await page.getByLabel('Code from the email').fill('AAAAA-AAAAA')
  await page.getByLabel('New password').fill('a new one, and a long one')
  await page.getByRole('button', { name: 'Change password' }).click()
  expect(await page.getByRole('alert').isVisible()).toBe(true)
  await page.getByLabel('Code from the email').fill(code)
  await page.getByLabel('New password').fill('a new one, and a long one')
  await page.getByRole('button', { name: 'Change password' }).click()
  expect(await page.getByRole('status').textContent()).toContain('Your password is changed')
  await page.goto(`${pds.url}/account`)
  expect(page.url()).toBe(`${pds.url}/account/sign-in`)
  expect(await client.refresh(tokens.refresh_token)).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
  await signIn(page, { handle: carol.handle, password: 'a new one, and a long one' })
})

test('asking for a code for an address that nobody has looks the same', async () => {
  const page = await freshPage(browser)
  const mails = pds.mails.length
  await page.goto(`${pds.url}/account/reset-password`)
  await page.getByLabel('Email address').fill('nobody@example.com')
  await page.getByRole('button', { name: 'Send the code' }).click()
  expect(await page.getByRole('status').textContent()).toContain('on its way')
  expect(pds.mails.length).toBe(mails)
})

test('the account page ends the access of apps, app passwords and sessions at once', async () => {
  const dora = await createAccount(pds, 'dora')
  const client = newClient()
  const tokens = await client.signIn({ identifier: dora.handle, password: dora.password }, { scope: SCOPE })
  const page = await freshPage(browser, { viewport: DESKTOP })
  await signIn(page, dora)
  await page.getByRole('button', { name: 'End the access of an app on this device' }).click()
  expect(await page.getByRole('status').textContent()).toContain('no access any more')
  expect(await client.call(tokens.access_token, 'com.atproto.server.getSession')).toMatchObject({ status: 401 })

  await page.getByText('New app password').click()
  await page.getByLabel('Name').fill('An old app')
  await page.getByRole('button', { name: 'Create app password' }).click()
  const secret = await page.locator('.secret').textContent()
  const login = () => request(`${pds.url}/xrpc/com.atproto.server.createSession`, { json: { identifier: dora.handle, password: secret } })
  expect(await login()).toMatchObject({ status: 200 })
  await page.goto(`${pds.url}/account`)
  expect(await page.getByText(secret!).count()).toBe(0)
  await page.getByRole('button', { name: 'Revoke An old app' }).click()
  expect(await login()).toMatchObject({ status: 401 })

  await page.locator('#sessions').getByRole('button', { name: 'End' }).first().click()
  expect(await request(`${pds.url}/xrpc/com.atproto.server.refreshSession`, { method: 'POST', headers: { authorization: `Bearer ${dora.refreshJwt}` } })).toMatchObject({ status: 400 })
})

test('handle, address and password are changed on the account page', async () => {
  const erin = await createAccount(pds, 'erin')
  const page = await freshPage(browser)
  await signIn(page, erin)
  await page.getByText('Change handle').first().click()
  await page.getByLabel('New handle').fill('erin-elsewhere.test')
  await page.getByRole('button', { name: 'Change handle' }).click()
  expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe('@erin-elsewhere.test')

  await page.getByText('Change email address').first().click()
  await page.getByLabel('New email address').fill('erin@elsewhere.example')
  await page.getByLabel('Your password').fill('wrong')
  await page.getByRole('button', { name: 'Change email address' }).click()
  expect(await page.getByRole('alert').isVisible()).toBe(true)
  await page.getByLabel('New email address').fill('erin@elsewhere.example')
  await page.getByLabel('Your password').fill(erin.password)
  await page.getByRole('button', { name: 'Change email address' }).click()
  expect(await page.getByText('erin@elsewhere.example').isVisible()).toBe(true)

  const elsewhere = await freshPage(browser)
  await signIn(elsewhere, { handle: 'erin-elsewhere.test', password: erin.password })
  await page.getByText('Change password').first().click()
  await page.getByLabel('Current password').fill(erin.password)
  await page.getByLabel('New password').fill('another one, and a long one')
  await page.getByRole('button', { name: 'Change password' }).click()
  expect(await page.getByRole('status').textContent()).toContain('Your password is changed')
  await elsewhere.goto(`${pds.url}/account`)
  expect(elsewhere.url()).toContain('/account/sign-in')
  await page.getByRole('button', { name: 'Sign out' }).first().click()
  expect(page.url()).toContain('/account/sign-in')
  expect(await page.context().cookies(pds.url)).toEqual([])
})

test('a form that acts for somebody who is signed in needs the token of the page, and a page of ours', async () => {
  const page = await freshPage(browser)
  await signIn(page)
  const [cookie] = await page.context().cookies(pds.url)
  const token = await page.locator('[name=form_token]').first().inputValue()
  const send = (path: string, fields: Record<string, string>, headers: Record<string, string> = {}) =>
    request(`${pds.url}${path}`, {
      method: 'POST',
      headers: { cookie: `${cookie!.name}=${cookie!.value}`, 'content-type': 'application/x-www-form-urlencoded', ...headers },
      body: new URLSearchParams({ account: alice.did, ...fields }).toString(),
    })
  expect(await send('/account/app-passwords', { name: 'sneaky' })).toMatchObject({ status: 403 })
  expect(await send('/account/app-passwords', { name: 'sneaky', form_token: token }, { 'sec-fetch-site': 'cross-site' })).toMatchObject({ status: 403 })
  const client = newClient()
  const decision = { request_uri: await client.requestUri({ scope: SCOPE }), client_id: client.clientId, action: 'approve' }
  expect(await send('/oauth/authorize', decision)).toMatchObject({ status: 403 })
  expect(await send('/oauth/authorize', { ...decision, form_token: token })).toMatchObject({ status: 303 })
  await page.goto(`${pds.url}/account`)
  expect(await page.getByText('sneaky').count()).toBe(0)
})

test('signing in replaces the cookie, so that one which was planted opens nothing', async () => {
  const page = await freshPage(browser)
  const planted = 'A'.repeat(43)
  await page.context().addCookies([{ name: 'holdfast', value: planted, url: pds.url }])
  await signIn(page)
  const [first] = await page.context().cookies(pds.url)
  await signIn(page)
  const [second] = await page.context().cookies(pds.url)
  expect(new Set([planted, first!.value, second!.value]).size).toBe(3)
  for (const value of [planted, first!.value]) expect(await request(`${pds.url}/account`, { headers: { cookie: `holdfast=${value}` } })).toMatchObject({ status: 303 })
})

/** Every page, as it looks on a phone and on a desk, by day and by night. */
const sights: Record<string, (page: Page) => Promise<unknown>> = {
  landing: (page) => page.goto(pds.url),
  authorize: (page) => openRequest(page, newClient(), { login_hint: alice.handle }),
  'sign-in': (page) => page.goto(`${pds.url}/account/sign-in`),
  'sign-up': (page) => page.goto(`${pds.url}/account/sign-up`),
  reset: (page) => page.goto(`${pds.url}/account/reset-password`),
  code: (page) => page.goto(`${pds.url}/account/reset-password/code?sent=yes`),
  error: (page) => page.goto(`${pds.url}/oauth/authorize`),
  account: (page) => signIn(page),
  async chooser(page) {
    await signIn(page)
    await openRequest(page, newClient())
  },
}

test.each(Object.keys(sights))('the page %s fits on every screen, is named, and asks nobody else for anything', async (name) => {
  const page = await freshPage(browser)
  const asked = new Set<string>()
  page.on('request', (one) => asked.add(new URL(one.url()).origin))
  await sights[name]!(page)
  for (const [size, viewport] of Object.entries({ phone: PHONE, desktop: DESKTOP })) {
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.setViewportSize(viewport)
      await page.emulateMedia({ colorScheme })
      const { overflow, unnamed, headings, lang, ground } = await page.evaluate(measure)
      expect({ name, size, overflow, unnamed, headings, lang, ground }).toEqual({ name, size, overflow: 0, unnamed: [], headings: 1, lang: 'en', ground: GROUND[colorScheme] })
      if (SCREENSHOT_DIR) {
        mkdirSync(SCREENSHOT_DIR, { recursive: true })
        await page.screenshot({ path: join(SCREENSHOT_DIR, `${name}-${size}-${colorScheme}.png`), fullPage: true })
      }
    }
  }
  expect([...asked].filter((origin) => origin !== 'null')).toEqual([pds.url])
})

/** The colour behind everything, which says that the stylesheet was read and follows the scheme. */
const GROUND = { light: 'rgb(238, 243, 241)', dark: 'rgb(13, 20, 18)' }

/** Runs in the page. The compiler of the tests knows no DOM. */
const measure = `(() => ({
  overflow: Math.max(0, document.documentElement.scrollWidth - innerWidth),
  unnamed: [...document.querySelectorAll('input:not([type=hidden]), select, button, a')].filter((one) => !(one.labels?.length || one.getAttribute('aria-label') || one.textContent.trim())).map((one) => one.outerHTML),
  headings: document.querySelectorAll('h1').length,
  lang: document.documentElement.lang,
  ground: getComputedStyle(document.body).backgroundColor,
}))()` as unknown as () => { overflow: number; unnamed: string[]; headings: number; lang: string; ground: string }
