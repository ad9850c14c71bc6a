/** Passkeys in a real browser, with an authenticator: our script, and what the browser makes of our options. */
import { beforeEach, expect, test } from 'bun:test'
import type { CDPSession, Page } from 'playwright-core'
import { createAccount, PASSWORD, type TestAccount } from '../../support/clients/account.ts'
import { signIn } from '../../support/clients/browser.ts'
import { OAuthClient } from '../../support/clients/oauth-client.ts'
import { giveRole } from '../../support/clients/role-holder.ts'
import { useWorld } from '../../support/world.ts'

const { pds, freshPage } = useWorld({ browser: true, config: { rateLimit: { enabled: false } } })

let names = 0
let alice: TestAccount
let page: Page
let devtools: CDPSession
let authenticatorId: string
beforeEach(async () => {
  alice = await createAccount(pds, `alice${++names}`)
  page = await freshPage({ javaScriptEnabled: true })
  devtools = await page.context().newCDPSession(page)
  await devtools.send('WebAuthn.enable')
  const options = {
    protocol: 'ctap2',
    transport: 'internal',
    hasResidentKey: true,
    hasUserVerification: true,
    isUserVerified: true,
    automaticPresenceSimulation: true,
  } as const
  authenticatorId = (await devtools.send('WebAuthn.addVirtualAuthenticator', { options })).authenticatorId
})

/** Whether the person passes the PIN, the finger or the face. */
const verifies = (isUserVerified: boolean) =>
  devtools.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified })
const press = (name: string) => page.getByRole('button', { name, exact: true }).click()
const heading = (name: string) => page.getByRole('heading', { name, level: 1 }).waitFor()

async function addPasskey(name: string): Promise<void> {
  await signIn(page, pds, alice)
  await openNewPasskey()
  await page.getByLabel('Name', { exact: true }).fill(name)
  await press('Make the passkey')
}

async function openNewPasskey(): Promise<void> {
  await page.goto(`${pds.url}/account/factors`)
  await press('Add a passkey')
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD)
  await press('Continue')
}

async function signOut(): Promise<void> {
  await page.goto(`${pds.url}/account`)
  await press('Sign out')
  await page.waitForURL(/sign-in/)
}

test('a browser makes a passkey, signs in with it, and gives it beside the password', async () => {
  await addPasskey('Blue key')
  await heading('Your recovery codes')
  await page.goto(`${pds.url}/account/factors`)
  expect(await page.getByText('Blue key', { exact: true }).isVisible()).toBe(true)

  await signOut()
  await press('Use a passkey')
  await page.waitForURL(`${pds.url}/account`)

  await signOut()
  await page.getByLabel('Handle or email address').fill(alice.handle)
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD)
  await press('Sign in')
  await heading('One more step')
  await press('Use a passkey')
  await page.waitForURL(`${pds.url}/account`)
})

test('an app is let in with a passkey', async () => {
  await addPasskey('Blue key')
  await heading('Your recovery codes')
  await signOut()
  const client = new OAuthClient(pds)
  await page.goto(client.authorizeUrl(await client.requestUri()))
  const returned = page.waitForRequest((request) => request.url().startsWith(client.redirectUri))
  await press('Allow with a passkey')
  expect(new URL((await returned).url()).searchParams.get('code')).toBeTruthy()
})

test('an operator signs in at the console with a passkey, and shows it again before a dangerous act', async () => {
  await giveRole(pds, alice.did, 'owner')
  await addPasskey('Blue key')
  await heading('Your recovery codes')
  await page.goto(`${pds.url}/admin/sign-in`)
  await press('Use a passkey')
  await page.waitForURL(`${pds.url}/admin`)
  pds.clock.advance({ secs: 11 * 60 })
  const bob = await createAccount(pds, `gone${names}`)
  await page.goto(`${pds.url}/admin/account?did=${encodeURIComponent(bob.did)}`)
  const form = page.locator('details', { has: page.locator('input[name="act"][value="delete"]') }).last()
  await form.locator('summary').click()
  await form.getByLabel('Reason').fill('a test')
  await form.getByRole('button').click()
  await press('Use a passkey')
  await page.getByText('The account is deleted').waitFor()
  expect(await pds.count('account', { did: bob.did })).toBe(0)
})

test('who is not verified gets no further, and may try again', async () => {
  await addPasskey('Blue key')
  await heading('Your recovery codes')
  await signOut()
  await verifies(false)
  await press('Use a passkey')
  await page.getByText('No passkey was used').waitFor()
  await verifies(true)
  await press('Use a passkey')
  await page.waitForURL(`${pds.url}/account`)
  expect(await page.getByText(alice.did).first().isVisible()).toBe(true)
})

test('a device makes no second passkey for the account', async () => {
  await addPasskey('Blue key')
  await heading('Your recovery codes')
  await page.goto(`${pds.url}/account/factors`)
  await press('Add a passkey')
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD)
  await press('Continue')
  await press('Use a passkey')
  await heading('Add a passkey')
  await press('Make the passkey')
  await page.getByText('No passkey was made').waitFor()
  expect(await pds.count('passkey', { did: alice.did })).toBe(1)
})

test('the page of factors is in the language of the person', async () => {
  await addPasskey('Blue key')
  await heading('Your recovery codes')
  for (const [locale, title] of [
    ['de', 'Wie du dich anmeldest'],
    ['ja', 'ログイン方法'],
  ] as const) {
    await page.setExtraHTTPHeaders({ 'accept-language': locale })
    await page.goto(`${pds.url}/account/factors`)
    expect(await page.getByRole('heading', { name: title, level: 1 }).isVisible()).toBe(true)
  }
})

test('without scripts, pages show no button that does nothing, and say what is missing', async () => {
  await addPasskey('Blue key')
  const plain = await freshPage()
  await plain.goto(`${pds.url}/account/sign-in`)
  expect(await plain.getByRole('button', { name: 'Use a passkey' }).isVisible()).toBe(false)
  const bob = await createAccount(pds, `bob${names}`)
  await signIn(plain, pds, bob)
  await plain.goto(`${pds.url}/account/factors`)
  await plain.getByRole('button', { name: 'Add a passkey' }).click()
  await plain.getByLabel('Password', { exact: true }).fill(PASSWORD)
  await plain.getByRole('button', { name: 'Continue' }).click()
  expect(await plain.getByText('Your browser runs no scripts on this page').isVisible()).toBe(true)
  expect(await plain.getByRole('button', { name: 'Make the passkey' }).isVisible()).toBe(false)
})
