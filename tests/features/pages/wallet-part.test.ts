/** What the account page shows of the holder's wallet, and what can be ended there. */
import { beforeEach, describe, expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { createAccount, type TestAccount } from '../../support/clients/account.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { loopbackClientId, OAuthClient } from '../../support/clients/oauth-client.ts'
import {
  completeConsent,
  decisionOf,
  openConsent,
  sendDecision,
  statusOf,
} from '../../support/clients/wallet-consent.ts'
import { CookieBrowser } from '../../support/clients/wallet-sign-in.ts'
import { type DeviceKey, sovereignAccount, walletSession } from '../../support/clients/wallet.ts'
import { useWorld } from '../../support/world.ts'

const SCOPE = 'atproto transition:generic'

const { pds, freshPage } = useWorld({
  browser: true,
  config: { rateLimit: { enabled: false }, accounts: { passwordOptional: true } },
})

const FIREFOX = 'Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0'

let names = 0
/** Has no password. */
let alice: TestAccount & { device: DeviceKey }
let page: Page
/** The browser of the page, as far as it sends forms. */
let forms: CookieBrowser
beforeEach(async () => {
  alice = await sovereignAccount(pds, `alice-${names++}`, { password: undefined })
  forms = new CookieBrowser(pds, FIREFOX)
  const begun = await forms.begin()
  const choice = { grantedScope: 'atproto', matchCode: begun.matchCode! }
  await sendDecision(pds, decisionOf(pds, alice, begun, choice))
  await forms.complete(begun.requestId)
  page = await freshPage({ userAgent: FIREFOX })
  await page.context().addCookies([{ name: 'holdfast', value: forms.cookies.get('holdfast')!, url: pds.url }])
  await page.goto(`${pds.url}/account`)
})

const words = async (selector: string) => (await page.locator(selector).innerText()).replaceAll(/\s+/g, ' ')
const formToken = () => page.locator('[name=form_token]').first().inputValue()
const app = () => new OAuthClient(pds, loopbackClientId(SCOPE))
const asked = (hint: string, headers: Record<string, string> = {}) =>
  openConsent(app(), { scope: SCOPE, login_hint: hint }, headers)

test('somebody without any of this sees nothing of it', async () => {
  expect(await page.locator('#wallet').count()).toBe(0)
})

describe('without a password', () => {
  test('no part of the page asks for one, and the way to a first one is explained', async () => {
    expect(await page.locator('input[type=password]').count()).toBe(0)
    expect(await page.getByText('Change password').count()).toBe(0)
    await page.getByRole('link', { name: 'Password', exact: true }).click()
    expect(await words('#password')).toContain('you sign in with your wallet')
    await page.goto(`${pds.url}/account`)
    await page.locator('summary', { hasText: 'Set a password' }).click()
    await page.getByRole('link', { name: `Have a code sent to ${alice.email}` }).click()
    expect(new URL(page.url()).pathname).toBe('/account/reset-password')
  })

  test('the address is changed without one', async () => {
    await page.locator('summary', { hasText: 'Change email address' }).click()
    await page.getByLabel('New email address').fill(`new-${alice.email}`)
    await page.getByRole('button', { name: 'Change email address' }).click()
    expect(await words('#details')).toContain(`new-${alice.email}`)
  })
})

describe('requests that wait', () => {
  test('are shown with who asks, from where and since when, and their code', async () => {
    const consent = await asked(alice.handle, {
      referer: 'https://app.example.com/sign-in',
      'x-forwarded-for': '203.0.113.99',
      'user-agent': FIREFOX,
    })
    const elsewhere = await new CookieBrowser(pds).begin(alice.did)
    await asked('somebody-else.test')
    await page.reload()
    const told = await words('#wallet')
    for (const part of [
      'an app on this device',
      'https://app.example.com',
      '203.0.113.0/24',
      'Firefox on Linux',
      'UTC',
      consent.userCode,
    ])
      expect(told).toContain(part)
    expect(told).toContain(`this account page`)
    expect(told).toContain(elsewhere.userCode)
    expect(told).not.toContain('203.0.113.99')
    expect(await page.locator('#wallet li').count()).toBe(2)
    expect(await page.content()).not.toContain(`>${elsewhere.matchCode}<`)
  })

  test('are denied by the holder, for good', async () => {
    const consent = await asked(alice.handle)
    const kept = await asked(alice.did)
    await page.reload()
    await page.getByRole('button', { name: consent.userCode }).click()
    expect(await page.getByRole('status').innerText()).toContain('can no longer be approved')
    expect((await statusOf(pds, consent.requestId)).body).toEqual({ status: 'denied' })
    expect((await sendDecision(pds, decisionOf(pds, alice, consent))).status).toBe(404)
    expect((await completeConsent(pds, consent.requestId)).status).toBe(400)
    expect((await request(app().authorizeUrl(consent.requestUri))).status).toBe(400)
    expect((await statusOf(pds, kept.requestId)).body).toEqual({ status: 'pending' })
  })

  test('are shown up to a bound, however many somebody makes', async () => {
    for (let i = 0; i < 22; i++) await asked(alice.did)
    await page.reload()
    expect(await page.locator('#wallet li').count()).toBe(20)
  })

  test('of others are denied by nobody else, and an approval is not taken back', async () => {
    const bob = await createAccount(pds, `bob-${names++}`)
    const [ofBob, ofNobody, approved] = [
      await openConsent(app(), { scope: SCOPE, login_hint: 'nobody.test' }),
      await asked('any.test'),
      await asked(alice.did),
    ]
    expect(bob.did).not.toBe(alice.did)
    await sendDecision(pds, decisionOf(pds, alice, approved))
    const form_token = await formToken()
    for (const { requestId } of [ofBob, ofNobody, approved])
      await forms.send('/account/wallet/requests', { account: alice.did, form_token, id: requestId })
    expect((await statusOf(pds, ofBob.requestId)).body).toEqual({ status: 'pending' })
    expect((await statusOf(pds, ofNobody.requestId)).body).toEqual({ status: 'pending' })
    expect((await statusOf(pds, approved.requestId)).body).toEqual({ status: 'approved' })
  })
})

describe('a transfer', () => {
  const begin = async (token: string) =>
    (await request(`${pds.url}/v1/transfer/initiate`, { method: 'POST', headers: bearer(token) })).body as {
      transferCode: string
    }
  const accept = (transferCode: string) =>
    request(`${pds.url}/v1/transfer/accept`, { json: { transferCode, devicePublicKey: 'zPhone', platform: 'ios' } })

  test('that is running is shown, and cancelled; its code is nowhere', async () => {
    const { transferCode } = await begin(await walletSession(pds, alice.did))
    await page.reload()
    expect(await words('#wallet')).toContain('Any device with its code can accept it until')
    expect(await page.content()).not.toContain(transferCode)
    await page.getByRole('button', { name: 'Cancel the transfer' }).click()
    expect(await page.getByRole('status').innerText()).toContain('The transfer has ended')
    expect((await accept(transferCode)).status).toBe(400)
  })

  test('names the device that accepted it, which is revoked with one button', async () => {
    const { transferCode } = await begin(await walletSession(pds, alice.did))
    const { deviceId, deviceToken } = (await accept(transferCode)).body
    const opens = async () =>
      (await request(`${pds.url}/v1/devices/${deviceId}/pds`, { headers: bearer(deviceToken) })).status
    expect(await opens()).toBe(200)
    await page.reload()
    expect(await words('#wallet')).toContain('A device accepted it')
    const other = await createAccount(pds, `eve-${names++}`)
    const theirs = new CookieBrowser(pds)
    await theirs.send('/account/sign-in', { identifier: other.handle, password: other.password })
    const form_token = /name="form_token" value="([^"]+)"/.exec((await theirs.open('/account')).body)![1]!
    await theirs.send('/account/wallet/devices', { account: other.did, form_token, id: deviceId })
    await theirs.send('/account/wallet/transfer', { account: other.did, form_token })
    expect(await opens()).toBe(200)
    await page.getByRole('button', { name: 'Revoke iPhone / iPad' }).click()
    expect(await page.getByRole('status').innerText()).toContain('The device is revoked')
    expect(await opens()).toBe(401)
    await page.goto(`${pds.url}/account`)
    expect(await page.locator('#wallet').count()).toBe(0)
  })
})

test('sessions of wallets are shown and ended, each by its holder alone', async () => {
  const [first, second] = [await walletSession(pds, alice.did), await walletSession(pds, alice.did)]
  const bob = await createAccount(pds, `bob-${names++}`)
  const ofBob = await walletSession(pds, bob.did)
  const lives = async (token: string) =>
    (await request(`${pds.url}/v1/transfer/initiate`, { method: 'POST', headers: bearer(token) })).status !== 401
  await page.reload()
  const ends = page.getByRole('button', { name: 'End the wallet session of A wallet' })
  expect(await ends.count()).toBe(2)
  const theirs = new CookieBrowser(pds)
  await theirs.send('/account/sign-in', { identifier: bob.handle, password: bob.password })
  const form_token = /name="form_token" value="([^"]+)"/.exec((await theirs.open('/account')).body)![1]!
  const id = await page.locator('form[action*="wallet-sessions"] [name=id]').first().inputValue()
  await theirs.send('/account/wallet-sessions', { account: bob.did, form_token, id })
  expect(await Promise.all([first, second, ofBob].map(lives))).toEqual([true, true, true])
  await ends.first().click()
  expect(await page.getByRole('status').innerText()).toContain('Signed out')
  expect((await Promise.all([first, second].map(lives))).toSorted()).toEqual([false, true])
  expect(await lives(ofBob)).toBe(true)
})
