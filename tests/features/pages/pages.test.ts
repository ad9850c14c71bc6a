/** The pages in a real browser, without scripts: what a person reads, fills in and is led to. */
import { describe, expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { createAccount, PASSWORD } from '../../support/clients/account.ts'
import { DESKTOP, signIn } from '../../support/clients/browser.ts'
import { request } from '../../support/clients/http.ts'
import { loopbackClientId, OAuthClient } from '../../support/clients/oauth-client.ts'
import { lastCode } from '../../support/servers/mail.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'

const { pds, freshPage } = useWorld({ browser: true, config: { rateLimit: { enabled: false } } })
const alice = setUp(() => createAccount(pds, 'alice'))
/** The app that the browser is sent back to, on a port that nobody knew before. */
const app = setUp(() => Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response('back in the app') }))

const SCOPE = 'atproto transition:generic transition:email repo:app.bsky.feed.post?action=create'
const newClient = () =>
  new OAuthClient(
    pds,
    loopbackClientId(SCOPE, 'http://127.0.0.1/callback'),
    null,
    `http://127.0.0.1:${app.port}/callback`,
  )

async function openRequest(
  page: Page,
  client: OAuthClient,
  changes: Record<string, string | undefined> = {},
): Promise<void> {
  await page.goto(client.authorizeUrl(await client.requestUri({ scope: SCOPE, ...changes })))
}

const answerIn = (page: Page) => new URL(page.url()).searchParams
const scopeOf = async (client: OAuthClient, page: Page) => (await client.redeem(answerIn(page).get('code')!)).body.scope

test('a person reads what an app asks for, unticks some of it, and is led back', async () => {
  const page = await freshPage()
  const client = newClient()
  await openRequest(page, client, { login_hint: alice.handle })
  expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe('Sign in to an app on this device?')
  expect(await page.title()).toBe('Sign in to an app on this device? · holdfast')
  expect(await page.getByLabel('Handle or email address').inputValue()).toBe(alice.handle)
  expect(await page.getByRole('checkbox', { name: 'Create posts' }).count()).toBe(1)
  await page.getByRole('checkbox', { name: 'See your email address' }).uncheck()
  await page.getByLabel('Password', { exact: true }).fill(alice.password)
  await page.getByRole('button', { name: 'Allow access' }).click()
  await page.waitForURL(/\/callback/)
  expect(await page.textContent('body')).toBe('back in the app')
  expect(await scopeOf(client, page)).toBe('atproto transition:generic repo:app.bsky.feed.post?action=create')
})

test('the keyboard alone does, and Enter means yes', async () => {
  const page = await freshPage({ viewport: DESKTOP })
  const client = newClient()
  await openRequest(page, client, { login_hint: alice.handle })
  await page.getByLabel('Password', { exact: true }).focus()
  await page.keyboard.type(alice.password)
  await page.keyboard.press('Enter')
  await page.waitForURL(/\/callback/)
  expect(answerIn(page).get('code')).toHaveLength(43)
})

test('saying no needs nothing filled in', async () => {
  const page = await freshPage()
  await openRequest(page, newClient())
  await page.getByRole('button', { name: 'Deny' }).click()
  await page.waitForURL(/\/callback/)
  expect(answerIn(page).get('error')).toBe('access_denied')
})

test('a wrong password is shown at its field, and what was unticked stays so', async () => {
  const page = await freshPage()
  await openRequest(page, newClient(), { login_hint: alice.handle })
  await page.getByRole('checkbox', { name: 'Post and act as you' }).uncheck()
  await page.getByLabel('Password', { exact: true }).fill('not it')
  await page.getByRole('button', { name: 'Allow access' }).click()
  expect(await page.getByRole('alert').textContent()).toContain('wrong')
  expect(await page.getByRole('checkbox', { name: 'Post and act as you' }).isChecked()).toBe(false)
  const password = page.getByLabel('Password', { exact: true })
  expect(await password.getAttribute('aria-invalid')).toBe('true')
  expect(await password.inputValue()).toBe('')
  expect(await password.evaluate('document.activeElement === document.getElementById("password")')).toBe(true)
})

test('who stays signed in chooses an account the next time, and needs no password for a week', async () => {
  const bob = await createAccount(pds, 'bob')
  const page = await freshPage()
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
  const page = await freshPage()
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
  const page = await freshPage()
  await signIn(page, pds, carol)
  await page.goto(`${pds.url}/.well-known/change-password`)
  await page.getByLabel('Email address').fill(carol.email)
  await page.getByRole('button', { name: 'Send the code' }).click()
  expect(await page.getByRole('status').textContent()).toContain('sent a code')
  const code = await lastCode(pds, carol.email)
  await page.getByLabel('Code from the email').fill('AAAAA-AAAAA')
  await page.getByLabel('New password').fill('a new one, and a long one')
  await page.getByRole('button', { name: 'Change password' }).click()
  await page.getByRole('alert').waitFor()
  await page.getByLabel('Code from the email').fill(code)
  await page.getByLabel('New password').fill('a new one, and a long one')
  await page.getByRole('button', { name: 'Change password' }).click()
  expect(await page.getByRole('status').textContent()).toContain('Your password is changed')
  await page.goto(`${pds.url}/account`)
  expect(page.url()).toBe(`${pds.url}/account/sign-in`)
  expect(await client.refresh(tokens.refresh_token)).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
  await signIn(page, pds, { handle: carol.handle, password: 'a new one, and a long one' })
})

test('asking for a code for an address that nobody has looks the same', async () => {
  const page = await freshPage()
  await page.goto(`${pds.url}/account/reset-password`)
  await page.getByLabel('Email address').fill('nobody@example.com')
  await page.getByRole('button', { name: 'Send the code' }).click()
  expect(await page.getByRole('status').textContent()).toContain('sent a code')
  expect(pds.mails.filter(({ to }) => to === 'nobody@example.com')).toEqual([])
})

test('a password that was forgotten in front of an app is replaced, and the app’s request continues', async () => {
  const grace = await createAccount(pds, 'grace')
  const page = await freshPage()
  const client = newClient()
  await openRequest(page, client)
  await page.getByRole('link', { name: 'Forgot your password?' }).click()
  await page.getByLabel('Email address').fill(grace.email)
  await page.getByRole('button', { name: 'Send the code' }).click()
  await page.getByLabel('Code from the email').fill('AAAAA-BBBBB')
  await page.getByLabel('New password').fill('an entirely new password')
  await page.getByRole('button', { name: 'Change password' }).click()
  expect(await page.getByRole('alert').textContent()).toContain('code')
  await page.getByLabel('Code from the email').fill(await lastCode(pds, grace.email))
  await page.getByLabel('New password').fill('an entirely new password')
  await page.getByRole('button', { name: 'Change password' }).click()
  expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe('Sign in to an app on this device?')
  expect(await page.getByRole('status').innerText()).toContain('password is changed')
  await page.getByLabel('Handle or email address').fill(grace.handle)
  await page.getByLabel('Password', { exact: true }).fill('an entirely new password')
  await page.getByRole('button', { name: 'Allow access' }).click()
  await page.waitForURL(/\/callback/)
  expect(await scopeOf(client, page)).toBe(SCOPE)
})

test('what the address of the reset page names as a request never leads to another site', async () => {
  const page = await freshPage()
  const query = new URLSearchParams({ request_uri: 'https://evil.example', client_id: '"><script>' })
  await page.goto(`${pds.url}/account/reset-password?${query.toString()}`)
  const back = await page.getByRole('link', { name: 'Back to sign-in' }).getAttribute('href')
  expect(new URL(back!, pds.url).origin).toBe(new URL(pds.url).origin)
  expect(await page.locator('script').count()).toBe(0)
})

test('the account page ends the access of apps, app passwords and sessions at once', async () => {
  const dora = await createAccount(pds, 'dora')
  const client = newClient()
  const tokens = await client.signIn({ identifier: dora.handle, password: dora.password }, { scope: SCOPE })
  const page = await freshPage({ viewport: DESKTOP })
  await signIn(page, pds, dora)
  await page.getByRole('button', { name: 'End access of an app on this device' }).click()
  expect(await page.getByRole('status').textContent()).toContain('no longer has access')
  expect(await client.call(tokens.access_token, 'com.atproto.server.getSession')).toMatchObject({ status: 401 })

  await page.getByText('New app password').click()
  await page.getByLabel('Name').fill('An old app')
  await page.getByRole('button', { name: 'Create app password' }).click()
  const secret = await page.locator('.secret').textContent()
  const login = () =>
    request(`${pds.url}/xrpc/com.atproto.server.createSession`, { json: { identifier: dora.handle, password: secret } })
  expect(await login()).toMatchObject({ status: 200 })
  await page.goto(`${pds.url}/account`)
  expect(await page.getByText(secret!).count()).toBe(0)
  await page.getByRole('button', { name: 'Revoke An old app' }).click()
  expect(await login()).toMatchObject({ status: 401 })

  await page.locator('#sessions').getByRole('button', { name: 'End' }).first().click()
  expect(
    await request(`${pds.url}/xrpc/com.atproto.server.refreshSession`, {
      method: 'POST',
      headers: { authorization: `Bearer ${dora.refreshJwt}` },
    }),
  ).toMatchObject({ status: 400 })
})

test('the page of a new account has cards for what there is, and leads to another account', async () => {
  const newcomer = await createAccount(pds, 'emil')
  const page = await freshPage()
  await signIn(page, pds, newcomer)
  const cards = () => page.getByRole('heading', { level: 2 }).allInnerTexts()
  expect(await cards()).toEqual(['Signing in', 'Sessions', 'Activity', 'Account details'])
  expect(await page.getByText('No app has been given access').isVisible()).toBe(true)
  expect(await page.getByText('0 records, 0 of 1,073.7 MB of media').isVisible()).toBe(true)
  for (const link of await page.getByRole('navigation', { name: 'On this page' }).getByRole('link').all())
    expect(await page.locator((await link.getAttribute('href'))!).count()).toBe(1)

  await page.getByText('New app password').click()
  await page.getByLabel('Name', { exact: true }).fill('old phone')
  await page.getByRole('button', { name: 'Create app password' }).click()
  expect(await cards()).toEqual(['Signing in', 'App passwords', 'Sessions', 'Activity', 'Account details'])
  await page.getByRole('button', { name: 'Revoke old phone' }).click()
  expect(await page.getByRole('status').innerText()).toContain('The app password is revoked')
  await newClient().signIn({ identifier: newcomer.handle, password: newcomer.password }, { scope: SCOPE })
  await page.goto(`${pds.url}/account`)
  expect(await cards()).toEqual(['Apps with access', 'Signing in', 'Sessions', 'Activity', 'Account details'])

  await page.getByRole('link', { name: 'Add an account' }).click()
  await page.getByLabel('Handle or email address').fill(alice.handle)
  await page.getByLabel('Password', { exact: true }).fill(alice.password)
  await page.getByRole('button', { name: 'Sign in' }).click()
  expect(await page.getByRole('link', { name: `Switch to @${newcomer.handle}` }).count()).toBe(1)
})

test('handle, address and password are changed on the account page', async () => {
  const erin = await createAccount(pds, 'erin')
  const page = await freshPage()
  await signIn(page, pds, erin)
  await page.getByText('Change handle').first().click()
  await page.getByLabel('New handle').fill('erin-elsewhere.test')
  await page.getByRole('button', { name: 'Change handle' }).click()
  expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe('@erin-elsewhere.test')

  await page.getByText('Change email address').first().click()
  await page.getByLabel('New email address').fill('erin@elsewhere.example')
  await page.getByLabel('Your password').fill('wrong')
  await page.getByRole('button', { name: 'Change email address' }).click()
  await page.getByRole('alert').waitFor()
  await page.getByLabel('New email address').fill('erin@elsewhere.example')
  await page.getByLabel('Your password').fill(erin.password)
  await page.getByRole('button', { name: 'Change email address' }).click()
  await page.getByText('erin@elsewhere.example').first().waitFor()

  const elsewhere = await freshPage()
  await signIn(elsewhere, pds, { handle: 'erin-elsewhere.test', password: erin.password })
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
  const page = await freshPage()
  await signIn(page, pds, alice)
  const [cookie] = await page.context().cookies(pds.url)
  const token = await page.locator('[name=form_token]').first().inputValue()
  const agent = await page.evaluate(() => navigator.userAgent)
  const send = (path: string, fields: Record<string, string>, headers: Record<string, string> = {}) =>
    request(`${pds.url}${path}`, {
      method: 'POST',
      headers: {
        cookie: `${cookie!.name}=${cookie!.value}`,
        'user-agent': agent,
        'content-type': 'application/x-www-form-urlencoded',
        ...headers,
      },
      body: new URLSearchParams({ account: alice.did, ...fields }).toString(),
    })
  expect(await send('/account/app-passwords', { name: 'sneaky' })).toMatchObject({ status: 403 })
  expect(
    await send('/account/app-passwords', { name: 'sneaky', form_token: token }, { 'sec-fetch-site': 'cross-site' }),
  ).toMatchObject({
    status: 403,
  })
  const client = newClient()
  const decision = {
    request_uri: await client.requestUri({ scope: SCOPE }),
    client_id: client.clientId,
    action: 'approve',
  }
  expect(await send('/oauth/authorize', decision)).toMatchObject({ status: 403 })
  expect(await send('/oauth/authorize', { ...decision, form_token: token })).toMatchObject({ status: 303 })
  await page.goto(`${pds.url}/account`)
  expect(await page.getByText('sneaky').count()).toBe(0)
})

test('signing in replaces the cookie, so that one which was planted opens nothing', async () => {
  const page = await freshPage()
  const planted = 'A'.repeat(43)
  await page.context().addCookies([{ name: 'holdfast', value: planted, url: pds.url }])
  await signIn(page, pds, alice)
  const [first] = await page.context().cookies(pds.url)
  await signIn(page, pds, alice)
  const [second] = await page.context().cookies(pds.url)
  expect(new Set([planted, first!.value, second!.value]).size).toBe(3)
  const agent = await page.evaluate(() => navigator.userAgent)
  const open = (value: string) =>
    request(`${pds.url}/account`, { headers: { cookie: `holdfast=${value}`, 'user-agent': agent } })
  for (const value of [planted, first!.value]) expect(await open(value)).toMatchObject({ status: 303 })
  expect(await open(second!.value)).toMatchObject({ status: 200 })
})

test('a page asks nobody else for anything, and says in which language it is', async () => {
  const page = await freshPage()
  const asked = new Set<string>()
  page.on('request', (one) => asked.add(new URL(one.url()).origin))
  await page.goto(pds.url)
  await openRequest(page, newClient())
  expect(await page.locator('html').getAttribute('lang')).toBe('en')
  await signIn(page, pds, alice)
  expect([...asked].filter((origin) => origin !== 'null')).toEqual([pds.url])
})

describe('an address of a form, opened by itself', () => {
  test('leads back to the section: Enter in the address bar after making an app password', async () => {
    const fay = await createAccount(pds, 'fay')
    const page = await freshPage()
    await signIn(page, pds, fay)
    await page.getByText('New app password').click()
    await page.getByLabel('Name', { exact: true }).fill('An app')
    await page.getByRole('button', { name: 'Create app password' }).click()
    expect(await page.locator('.secret').count()).toBe(1)
    const response = await page.goto(page.url())
    expect({ status: response!.status(), path: new URL(page.url()).pathname, hash: new URL(page.url()).hash }).toEqual({
      status: 200,
      path: '/account',
      hash: '#app-passwords',
    })
    expect(await page.locator('#app-passwords').getByText('An app', { exact: true }).count()).toBe(1)
    expect(await page.locator('.secret').count()).toBe(0)
  })

  test.each(['apps', 'sessions', 'browsers', 'app-passwords/revoke', 'handle', 'email', 'password', 'sign-out'])(
    '/account/%s is no dead end, and does nothing',
    async (path) => {
      const page = await freshPage()
      expect((await page.goto(`${pds.url}/account/${path}`))!.status()).toBe(200)
      expect(new URL(page.url()).pathname).toBe('/account/sign-in')
      await signIn(page, pds, alice)
      await page.goto(`${pds.url}/account/${path}?account=${alice.did}`)
      expect(new URL(page.url()).pathname).toBe('/account')
      expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe('@alice.test')
    },
  )

  test('shows the consent page again after a wrong password', async () => {
    const page = await freshPage()
    await openRequest(page, newClient(), { login_hint: alice.handle })
    await page.getByLabel('Password', { exact: true }).fill('not it')
    await page.getByRole('button', { name: 'Allow access' }).click()
    await page.goto(page.url())
    expect(await page.getByRole('button', { name: 'Allow access' }).count()).toBe(1)
  })
})

test.each([
  ['handle', 'New handle'],
  ['email', 'New email address'],
  ['password', 'Current password'],
])('#%s opens its form', async (section, label) => {
  const page = await freshPage()
  await signIn(page, pds, alice)
  expect(await page.getByLabel(label).isVisible()).toBe(false)
  await page.goto('about:blank')
  await page.goto(`${pds.url}/account#${section}`)
  await page.getByLabel(label).waitFor({ state: 'visible' })
  for (const other of ['New handle', 'New email address', 'Current password'])
    if (other !== label) expect(await page.getByLabel(other).isVisible()).toBe(false)
})

describe('what is wrong with a form is told at the field, in words for people, with what was typed', () => {
  const refused = async (page: Page, label: string, words: string) => {
    expect(await page.getByRole('alert').textContent()).toContain(words)
    const input = page.getByLabel(label, { exact: true })
    expect(await input.getAttribute('aria-invalid')).toBe('true')
    expect(await input.getAttribute('aria-describedby')).toContain('fault')
    expect(await input.isVisible()).toBe(true)
  }

  test.each([
    ['a handle with a space', { Handle: 'a b' }, 'Handle', 'letters, digits and hyphens'],
    ['a handle that is too long', { Handle: 'a'.repeat(64) }, 'Handle', 'too long'],
    ['a handle that is too short', { Handle: 'ab' }, 'Handle', 'too short'],
    ['a handle that is reserved', { Handle: 'admin' }, 'Handle', 'reserved'],
    ['a handle that somebody has', { Handle: 'alice' }, 'Handle', 'already taken'],
    ['an address without a mailbox', { 'Email address': 'nobody@localhost' }, 'Email address', 'typing mistakes'],
  ])('sign-up: %s', async (_, changes, label, words) => {
    const page = await freshPage()
    await page.goto(`${pds.url}/account/sign-up`)
    const typed = { Handle: 'someone-new', 'Email address': 'someone-new@example.com', ...changes }
    for (const [name, value] of Object.entries(typed)) await page.getByLabel(name, { exact: true }).fill(value)
    await page.getByLabel('Password', { exact: true }).fill(PASSWORD)
    await page.getByRole('button', { name: 'Create account' }).click()
    await refused(page, label, words)
    for (const [name, value] of Object.entries(typed))
      expect(await page.getByLabel(name, { exact: true }).inputValue()).toBe(value)
    expect(await page.getByLabel('Password', { exact: true }).inputValue()).toBe('')
  })

  test('a password that is too short: sign-up and change', async () => {
    const ida = await createAccount(pds, 'ida')
    const page = await freshPage()
    await page.goto(`${pds.url}/account/sign-up`)
    const handle = page.getByLabel('Handle', { exact: true })
    // Those who do not see the domain beside the field hear it.
    const described = (await handle.getAttribute('aria-describedby'))!.split(' ')
    expect(await page.locator(`#${described[0]}`).textContent()).toBe('.test')
    await handle.fill('too-short')
    await page.getByLabel('Email address').fill('too-short@example.com')
    await page.getByLabel('Password', { exact: true }).fill('short')
    await page.getByRole('button', { name: 'Create account' }).click()
    await refused(page, 'Password', 'at least 8 characters')
    await signIn(page, pds, ida)
    await page.getByText('Change password').first().click()
    await page.getByLabel('Current password').fill(ida.password)
    await page.getByLabel('New password').fill('short')
    await page.getByRole('button', { name: 'Change password' }).click()
    await refused(page, 'New password', 'at least 8 characters')
  })

  test('account page: handle, address, password, name of an app password', async () => {
    const gil = await createAccount(pds, 'gil')
    const page = await freshPage()
    await signIn(page, pds, gil)
    await page.goto(`${pds.url}/account#handle`)
    await page.getByLabel('New handle').fill('admin.test')
    await page.getByRole('button', { name: 'Change handle' }).click()
    await refused(page, 'New handle', 'reserved')
    expect(await page.getByLabel('New handle').inputValue()).toBe('admin.test')

    await page.getByText('Change email address').first().click()
    await page.getByLabel('New email address').fill(alice.email)
    await page.getByLabel('Your password').fill('not it')
    await page.getByRole('button', { name: 'Change email address' }).click()
    await refused(page, 'Your password', 'not your current password')
    expect(await page.getByLabel('New email address').inputValue()).toBe(alice.email)
    await page.getByLabel('Your password').fill(gil.password)
    await page.getByRole('button', { name: 'Change email address' }).click()
    await refused(page, 'New email address', 'another account')

    await page.getByText('Change password').first().click()
    await page.getByLabel('Current password').fill('not it')
    await page.getByLabel('New password').fill('a new password')
    await page.getByRole('button', { name: 'Change password' }).click()
    await refused(page, 'Current password', 'not your current password')

    for (let i = 0; i < 2; i++) {
      await page.getByText('New app password').click()
      await page.getByLabel('Name', { exact: true }).fill('twice')
      await page.getByRole('button', { name: 'Create app password' }).click()
    }
    await refused(page, 'Name', 'already')
    expect(await page.getByLabel('Name', { exact: true }).inputValue()).toBe('twice')
  })
})
