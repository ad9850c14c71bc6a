/** What the account page tells of sessions, and which there are. */
import { expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { createAccount, logIn, PASSWORD } from '../../support/clients/account.ts'
import { request } from '../../support/clients/http.ts'
import { askSession, sessionRequest, sovereignAccount, walletSession } from '../../support/clients/wallet.ts'
import { CookieBrowser } from '../../support/clients/wallet-sign-in.ts'
import { useWorld } from '../../support/world.ts'
import { signIn } from '../../support/clients/browser.ts'

const FIREFOX = 'Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0'
const SAFARI =
  'Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Mobile/15E148 Safari/604.1'

const { pds, freshPage } = useWorld({ browser: true, config: { rateLimit: { enabled: false } } })

const from = (userAgent: string, address: string) => ({ userAgent, extraHTTPHeaders: { 'x-forwarded-for': address } })
const rows = async (page: Page) =>
  (await page.locator('#sessions li .body').allInnerTexts()).map((text) => text.replaceAll(/\s+/g, ' '))

test('browsers and apps are told apart by program, way of signing in and network', async () => {
  const ann = await sovereignAccount(pds, 'ann')
  expect(await askSession(pds, sessionRequest(pds, ann), { 'x-forwarded-for': '203.0.113.7' })).toMatchObject({
    status: 200,
  })
  const appPassword = await ann.call('com.atproto.server.createAppPassword', { json: { name: 'Old phone' } })
  const session = (password: string, headers: Record<string, string>) =>
    request(`${pds.url}/xrpc/com.atproto.server.createSession`, { json: { identifier: ann.handle, password }, headers })
  expect(
    await session(ann.password, {
      'user-agent': 'Bluesky/1.90.0 CFNetwork/1494.0.7 Darwin/23.4.0',
      'x-forwarded-for': '198.51.100.23',
    }),
  ).toMatchObject({ status: 200 })
  expect(
    await session(ann.password, {
      'user-agent': FIREFOX,
      origin: 'https://bsky.app',
      'x-forwarded-for': '2001:db8:7:8::9',
    }),
  ).toMatchObject({ status: 200 })
  expect(
    await session(appPassword.body.password, { 'user-agent': '<b>curl</b>', 'x-forwarded-for': '192.0.2.1' }),
  ).toMatchObject({
    status: 200,
  })
  await signIn(await freshPage(from(SAFARI, '203.0.113.99')), pds, ann, { stays: true })
  pds.clock.advance({ days: 3 })
  const page = await freshPage(from(FIREFOX, '198.51.100.7'))
  await signIn(page, pds, ann, { stays: true })
  const told = await rows(page)
  const holding = (...words: string[]) => told.filter((row) => words.every((word) => row.includes(word)))
  expect(holding('Firefox on Linux', 'This browser', '198.51.100.0/24')).toHaveLength(1)
  expect(holding('Safari on iPhone', 'Browser, signed in', '203.0.113.0/24')).toHaveLength(1)
  expect(holding('Bluesky on an Apple device', 'App, signed in with your password', '198.51.100.0/24')).toHaveLength(1)
  expect(holding('App, signed in with a wallet', '203.0.113.0/24')).toHaveLength(1)
  expect(holding('bsky.app in Firefox on Linux', 'your password', '2001:db8:7::/48')).toHaveLength(1)
  expect(holding('An app', 'the app password “Old phone”', '192.0.2.0/24')).toHaveLength(1)
  for (const address of ['198.51.100.23', '203.0.113.99', '192.0.2.1 ', '7:8::9'])
    expect(told.join()).not.toContain(address)

  // Signing in once more in the same browser is the same browser, first used when it was.
  pds.clock.advance({ days: 20 })
  await signIn(page, pds, ann, { stays: true })
  const first = (told: string[]) =>
    told.filter((row) => row.includes('This browser')).map((row) => /First used [^,]*/.exec(row)![0])
  expect(first(await rows(page))).toEqual(first(told))
  expect(first(told)).toHaveLength(1)
})

test('one browser is signed out, or all others', async () => {
  const ben = await createAccount(pds, 'ben')
  const [phone, laptop, desk] = await Promise.all([
    freshPage(from(SAFARI, '192.0.2.1')),
    freshPage(),
    freshPage(from(FIREFOX, '192.0.2.2')),
  ])
  for (const page of [phone!, laptop!, desk!]) await signIn(page, pds, ben, { stays: true })
  await desk!.getByRole('button', { name: 'Sign out of Safari on iPhone' }).click()
  expect(await desk!.getByRole('status').textContent()).toContain('Signed out')
  await phone!.goto(`${pds.url}/account`)
  expect(new URL(phone!.url()).pathname).toBe('/account/sign-in')
  await laptop!.goto(`${pds.url}/account`)
  expect(new URL(laptop!.url()).pathname).toBe('/account')
  await signIn(phone!, pds, ben, { stays: true })
  await desk!.goto(`${pds.url}/account`)
  await desk!.getByRole('button', { name: 'Sign out of all other browsers' }).click()
  for (const page of [phone!, laptop!]) {
    await page.goto(`${pds.url}/account`)
    expect(new URL(page.url()).pathname).toBe('/account/sign-in')
  }
})

test("nobody's browser is signed out by another account", async () => {
  const [cat, dan] = [await createAccount(pds, 'cat'), await createAccount(pds, 'dan')]
  const [hers, other, his] = [await freshPage(), await freshPage(), await freshPage()]
  await signIn(hers, pds, cat, { stays: true })
  await signIn(other, pds, cat, { stays: true })
  await signIn(his, pds, dan, { stays: true })
  const id = await other.locator('#sessions [name=id]').first().inputValue()
  const [cookie] = await his.context().cookies(pds.url)
  const agent = await his.evaluate(() => navigator.userAgent)
  const form_token = await his.locator('[name=form_token]').first().inputValue()
  await request(`${pds.url}/account/browsers`, {
    method: 'POST',
    headers: {
      cookie: `${cookie!.name}=${cookie!.value}`,
      'user-agent': agent,
      'content-type': 'application/x-www-form-urlencoded',
    },
    body: new URLSearchParams({ account: dan.did, form_token, id }).toString(),
  })
  await hers.goto(`${pds.url}/account`)
  expect(new URL(hers.url()).pathname).toBe('/account')
})

test('a sign-up on the web leaves one browser signed in, and no session that nobody holds', async () => {
  const page = await freshPage(from(SAFARI, '192.0.2.77'))
  await page.goto(`${pds.url}/account/sign-up`)
  await page.getByLabel('Handle', { exact: true }).fill('eve-anew')
  await page.getByLabel('Email address').fill('eve@example.com')
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD)
  await page.getByRole('button', { name: 'Create account' }).click()
  await page.waitForURL(`${pds.url}/account`)
  const told = await rows(page)
  expect(told).toHaveLength(1)
  expect(told[0]).toContain('Safari on iPhone This browser')
  expect(told[0]).toContain('192.0.2.0/24')
  // A session of an app is there when an app has asked for it.
  await logIn(pds, { handle: 'eve-anew.test', email: 'eve@example.com' }, PASSWORD)
  await page.reload()
  expect(await rows(page)).toHaveLength(2)
})

test('a sign-up that is refused or left signs nobody in', async () => {
  const page = await freshPage()
  await page.goto(`${pds.url}/account/sign-up`)
  await page.getByLabel('Handle', { exact: true }).fill('x')
  await page.getByLabel('Email address').fill('x@example.com')
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD)
  await page.getByRole('button', { name: 'Create account' }).click()
  await page.getByRole('alert').waitFor()
  expect(await page.context().cookies(pds.url)).toEqual([])
})

test('the last use of a browser is shown, to the day, and noted once an hour', async () => {
  const uma = await createAccount(pds, 'uma')
  const page = await freshPage(from(FIREFOX, '198.51.100.7'))
  await signIn(page, pds, uma, { stays: true })
  const usedAt = async () => {
    await pds.ctx.background.settled()
    const [row] = await pds.rows('oauth_device_account', { did: uma.did })
    return row!.used_at!
  }
  const first = await usedAt()
  pds.clock.advance({ secs: 600 })
  await page.goto(`${pds.url}/account`)
  expect(await usedAt()).toBe(first)
  pds.clock.advance({ days: 5 })
  await page.goto(`${pds.url}/account`)
  expect((await usedAt()) - first).toBeGreaterThanOrEqual(5 * 86_400_000)
  await page.reload()
  const told = (await rows(page)).find((row) => row.includes('This browser'))!
  const [, signedIn, last] = /signed in ([\w ]+), last used (\d+ \w+ \d+)/.exec(told)!
  expect(Date.parse(`${last} UTC`) - Date.parse(`${signedIn} UTC`)).toBe(5 * 86_400_000)
})

test('the session of a wallet shows when it was last used', async () => {
  const vera = await sovereignAccount(pds, 'vera')
  const wallet = await walletSession(pds, vera.did)
  const ask = () => request(`${pds.url}/v1/app-passwords`, { headers: { authorization: `Bearer ${wallet}` } })
  expect((await ask()).status).toBe(200)
  pds.clock.advance({ days: 2 })
  expect((await ask()).status).toBe(200)
  await pds.ctx.background.settled()
  const page = await freshPage(from(FIREFOX, '198.51.100.7'))
  await signIn(page, pds, vera)
  expect((await rows(page)).find((row) => row.includes('Wallet, to manage'))).toContain('last used')
})

test('of many sessions the newest are shown, and all of them page by page if asked', async () => {
  const wanda = await createAccount(pds, 'wanda')
  for (let i = 0; i < 30; i++) await logIn(pds, wanda, wanda.password)
  const page = await freshPage()
  await signIn(page, pds, wanda)
  expect(await rows(page)).toHaveLength(5)
  await page.getByRole('link', { name: 'Show all 32' }).click()
  expect(await rows(page)).toHaveLength(25)
  expect(await page.locator('#apps, #details').count()).toBe(0)
  await page.getByRole('link', { name: 'Next' }).click()
  expect(await rows(page)).toHaveLength(7)
  expect(await page.getByRole('link', { name: 'Next' }).count()).toBe(0)
  await page.locator('#sessions').getByRole('button').last().click()
  await page.getByRole('status').waitFor()
  await page.getByRole('link', { name: 'Show all 31' }).waitFor()
})

const CHROME = 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Safari/537.36'

/** Who has copied the cookies of a browser, as another program, or as another version. */
function copyOf(browser: CookieBrowser, userAgent: string): CookieBrowser {
  const copy = new CookieBrowser(pds, userAgent)
  for (const [name, value] of browser.cookies) copy.cookies.set(name, value)
  return copy
}

test('a cookie opens nothing in another program or on another system, and an update signs nobody out', async () => {
  const fay = await createAccount(pds, 'fay')
  const browser = new CookieBrowser(pds, FIREFOX)
  await browser.send('/account/sign-in', { identifier: fay.did, password: PASSWORD, remember: 'yes' })
  expect(await browser.signedIn()).toBe(fay.did)
  const form_token = /name="form_token" value="([^"]+)"/.exec((await browser.open('/account')).body)![1]!
  for (const other of [CHROME, FIREFOX.replace('X11; Linux x86_64', 'Windows NT 10.0; Win64; x64'), 'curl/8.5.0', '']) {
    const thief = copyOf(browser, other)
    expect([other, await thief.signedIn()]).toEqual([other, null])
    const form = { account: fay.did, form_token, name: 'mine' }
    expect((await thief.send('/account/app-passwords', form)).headers.get('location') ?? '').toContain('/sign-in')
  }
  expect(await copyOf(browser, FIREFOX.replaceAll('128.0', '141.0')).signedIn()).toBe(fay.did)
  expect(await browser.signedIn()).toBe(fay.did)
})

test('who signs in with a copied cookie gets none of the accounts that are signed in there', async () => {
  const [gil, mal] = [await createAccount(pds, 'gil'), await createAccount(pds, 'mal')]
  const browser = new CookieBrowser(pds, FIREFOX)
  await browser.send('/account/sign-in', { identifier: gil.did, password: PASSWORD, remember: 'yes' })
  const thief = copyOf(browser, CHROME)
  await thief.send('/account/sign-in', { identifier: mal.did, password: PASSWORD, remember: 'yes' })
  expect(await thief.signedIn()).toBe(mal.did)
  expect((await thief.open('/account')).body).not.toContain(gil.handle)
  expect(await copyOf(thief, FIREFOX).signedIn()).toBe(null)
})
