/** The language that an app asks for is that of all pages on which a person signs in to it. */
import { expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { createAccount } from '../../support/clients/account.ts'
import { FactorHolder } from '../../support/clients/factor-holder.ts'
import { loopbackClientId, OAuthClient } from '../../support/clients/oauth-client.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'

const { pds, freshPage } = useWorld({ browser: true, config: { rateLimit: { enabled: false } } })
/** Has an authenticator app. */
const holder = setUp(async () => {
  const one = new FactorHolder(pds, await createAccount(pds, 'holder'))
  await one.signIn()
  await one.addApp()
  return one
})

const newClient = () =>
  new OAuthClient(pds, loopbackClientId('atproto', 'http://127.0.0.1/'), null, 'http://127.0.0.1/')

/** Opens the page of a request, in a browser whose person prefers French. */
async function asked(ui_locales: string | undefined, more: Record<string, string> = {}): Promise<Page> {
  const page = await freshPage()
  await page.setExtraHTTPHeaders({ 'accept-language': 'fr' })
  const client = newClient()
  await page.goto(client.authorizeUrl(await client.requestUri({ scope: 'atproto', ui_locales, ...more })))
  return page
}

const languageOf = (page: Page) => page.locator('html').getAttribute('lang')

test.each([
  ['de', 'de'],
  ['nl tlh ja de', 'ja'],
  ['PT-pt', 'pt-BR'],
  ['xx', 'fr'],
  ['', 'fr'],
  ['__proto__ constructor', 'fr'],
  [`${'nl '.repeat(19)}de`, 'de'],
  [`${'nl '.repeat(20)}de`, 'fr'],
  [`${'n'.repeat(1000)} de`, 'fr'],
  [undefined, 'fr'],
] as const)('an app that asks for %j', async (ui_locales, language) => {
  expect(await languageOf(await asked(ui_locales))).toBe(language)
})

test('the page of the sign-in stays in that language, with the second factor and when something is wrong', async () => {
  const page = await asked('nl de')
  expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe('Bei einer App auf diesem Gerät anmelden?')
  await page.getByLabel('Passwort', { exact: true }).fill('wrong')
  await page.getByLabel('Handle oder E-Mail-Adresse').fill(holder.account.handle)
  await page.getByRole('button', { name: 'Zugriff erlauben' }).click()
  expect(await page.getByRole('alert').textContent()).toContain('Das Konto oder das Passwort ist falsch')
  expect(await languageOf(page)).toBe('de')
  await page.getByLabel('Passwort', { exact: true }).fill(holder.account.password)
  await page.getByRole('button', { name: 'Zugriff erlauben' }).click()
  await page.locator('input[name=factor_code]').waitFor()
  expect(await languageOf(page)).toBe('de')
  await page.locator('input[name=factor_code]').fill('000000')
  await page.locator('button.primary').click()
  await page.getByRole('alert').waitFor()
  expect(await languageOf(page)).toBe('de')
})

test('so do the pages of a new account and of a forgotten password, and the mails of the account', async () => {
  const page = await asked('ja', { prompt: 'create' })
  expect(page.url()).toContain('/account/sign-up')
  expect(await languageOf(page)).toBe('ja')
  await page.getByLabel('メールアドレス').fill('newcomer@example.com')
  await page.getByLabel('ハンドル').fill('holder')
  await page.getByLabel('パスワード', { exact: true }).fill('a password of its own')
  await page.locator('button.primary').click()
  expect(await page.getByRole('alert').textContent()).toContain('すでに使われています')
  expect(await languageOf(page)).toBe('ja')
  await page.locator('p.links a').first().click()
  expect(page.url()).toContain('/oauth/authorize')
  expect(await languageOf(page)).toBe('ja')

  await page.locator('a[href^="/account/reset-password"]').click()
  expect(await languageOf(page)).toBe('ja')
  await page.locator('input[name=email]').fill('nobody@example.com')
  await page.locator('button.primary').click()
  expect(page.url()).toContain('/account/reset-password/code')
  expect(await languageOf(page)).toBe('ja')
})

test('what the person has chosen on a page outweighs what the app asks for', async () => {
  const page = await asked('de')
  await page.context().addCookies([{ name: 'holdfast-language', value: 'es', url: pds.url }])
  await page.reload()
  expect(await languageOf(page)).toBe('es')
})
