/** The consent page of an app while a wallet decides: with the page's script, and without. */
import { beforeEach, expect, test } from 'bun:test'
import type { Page, Request } from 'playwright-core'
import { createAccount } from '../../support/clients/account.ts'
import { loopbackClientId, OAuthClient } from '../../support/clients/oauth-client.ts'
import { decisionOf, sendDecision, statusOf, latch } from '../../support/clients/wallet-consent.ts'
import { sovereignAccount } from '../../support/clients/wallet.ts'
import { setUp } from '../../support/set-up.ts'
import { until } from '../../support/until.ts'
import { useWorld } from '../../support/world.ts'
import { atOneNode } from '../../support/turns.ts'

const SCOPE = 'atproto transition:generic'

/** Where the app takes its answers. */
const app = setUp(() => Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response('back in the app') }))
const { pds, freshPage } = useWorld({
  browser: true,
  config: { rateLimit: { enabled: false }, accounts: { passwordOptional: true } },
})
const alice = setUp(() => sovereignAccount(pds, 'alice', { password: undefined }))
const bob = setUp(() => createAccount(pds, 'bob'))

let client: OAuthClient
beforeEach(() => {
  const redirectUri = `http://127.0.0.1:${app.port}/callback`
  client = new OAuthClient(pds, loopbackClientId(SCOPE, redirectUri), null, redirectUri)
})

interface Waiting {
  page: Page
  requestId: string
  decide(decision?: 'approve' | 'deny', matchCode?: string): Promise<void>
  /** Let the page’s script and the server see time pass, and wait until the script has asked. */
  poll(secs: number): Promise<void>
}

async function open({ javaScriptEnabled = true, hint = alice.handle as string | undefined } = {}): Promise<Waiting> {
  const page = await freshPage({ javaScriptEnabled })
  if (javaScriptEnabled) await page.clock.install()
  await page.goto(client.authorizeUrl(await client.requestUri({ scope: SCOPE, login_hint: hint })))
  const requestId = (await page.locator('[data-request-id]').getAttribute('data-request-id'))!
  return {
    page,
    requestId,
    async decide(decision = 'approve', matchCode) {
      const body = decisionOf(pds, alice, { requestId, clientId: client.clientId }, { decision, matchCode })
      const { status } = await sendDecision(pds, body)
      if (status !== 200) throw new Error(`the decision was answered ${status}`)
    },
    async poll(secs) {
      pds.clock.advance({ secs })
      await Promise.all([page.waitForResponse(/\/oauth\/authorize\/status/), page.clock.runFor(secs * 1000)])
    },
  }
}

async function expectSession(page: Page): Promise<void> {
  await page.waitForURL(/\/callback\?/)
  const { searchParams } = new URL(page.url())
  expect(searchParams.get('iss')).toBe(pds.url)
  const { status, body } = await client.redeem(searchParams.get('code')!)
  expect({ status, sub: body.sub, scope: body.scope }).toEqual({ status: 200, sub: alice.did, scope: SCOPE })
}

test('the page waits for the wallet and continues by itself', async () => {
  const { page, decide, poll } = await open()
  expect(await page.locator('.user-code.mono').innerText()).toMatch(/^[A-Z0-9]{4}-[A-Z0-9]{4}$/)
  expect(await page.locator('#match-code').count()).toBe(0)
  await poll(3)
  expect(await page.getByRole('status').innerText()).toContain('Waiting for your wallet')
  await decide()
  await poll(3)
  await expectSession(page)
})

test('the page says so when the wallet denies, and asks no more', async () => {
  const { page, decide, poll } = await open()
  await decide('deny')
  await poll(3)
  await page.getByText('Denied in your wallet').waitFor()
  expect(await page.getByRole('button', { name: 'Continue' }).isVisible()).toBe(false)
  let asked = 0
  page.on('request', () => asked++)
  await page.clock.runFor(60_000)
  expect(asked).toBe(0)
  expect(new URL(page.url()).pathname).toBe('/oauth/authorize')
})

test('the page says so when its time is over', async () => {
  const { page, poll } = await open()
  pds.clock.advance({ secs: 298 })
  await poll(3)
  await page.getByText('The time for this request is over').waitFor()
  expect((await page.reload())!.status()).toBe(400)
})

test('the page slows down when it is told to, and goes on when the network was away', async () => {
  using _ = atOneNode(pds, 'each node paces clients by itself')
  const { page, requestId, decide, poll } = await open()
  pds.clock.advance({ secs: 3 })
  await statusOf(pds, requestId)
  const [slow] = await Promise.all([page.waitForResponse(/\/oauth\/authorize\/status/), page.clock.runFor(3000)])
  expect(slow.status()).toBe(429)
  let asked = 0
  page.on('request', () => asked++)
  await page.clock.runFor(4000)
  expect(asked).toBe(0)
  await page.context().setOffline(true)
  await Promise.all([page.waitForEvent('requestfailed'), page.clock.runFor(1000)])
  await page.context().setOffline(false)
  await decide()
  await poll(5)
  await expectSession(page)
})

/** Whether the tab is looked at, as the script sees it: headless browsers show every tab. */
const look = (page: Page, isHidden: boolean) =>
  page.evaluate(`Object.defineProperty(document, 'hidden', { configurable: true, get: () => ${isHidden} })
document.dispatchEvent(new Event('visibilitychange'))`)

/** Lets the page's script see time pass, but not while it waits for an answer. Returns how often it has asked. */
async function asked(page: Page, secs: number): Promise<number> {
  let count = 0
  let unanswered = 0
  const isQuestion = (request: Request) => request.url().includes('/status')
  const noteQuestion = (request: Request) => {
    if (!isQuestion(request)) return
    count++
    unanswered++
  }
  const noteAnswer = (request: Request) => {
    if (isQuestion(request)) unanswered--
  }
  page.on('request', noteQuestion)
  page.on('requestfinished', noteAnswer)
  page.on('requestfailed', noteAnswer)
  for (let i = 0; i < secs; i++) {
    pds.clock.advance({ secs: 1 })
    await page.clock.runFor(1000)
    await until(() => unanswered === 0)
  }
  page.off('request', noteQuestion)
  page.off('requestfinished', noteAnswer)
  page.off('requestfailed', noteAnswer)
  return count
}

test('a tab that nobody looks at asks less often, and soon when it is looked at again', async () => {
  const { page, decide } = await open()
  await look(page, true)
  expect(await asked(page, 45)).toBe(3)
  await decide()
  await asked(page, 5)
  pds.clock.advance({ secs: 3 })
  await Promise.all([page.waitForURL(/\/callback\?/), look(page, false), page.clock.runFor(100)])
  await expectSession(page)
})

test('a part that is folded asks less often, and its number stands on the page once devices were told', async () => {
  const { page, requestId } = await open({ hint: 'somebody.example.com' })
  expect(await page.locator('.user-code').isVisible()).toBe(false)
  expect(await asked(page, 45)).toBe(3)
  await page.getByText('Use your wallet instead').click()
  expect(await page.locator('.user-code').isVisible()).toBe(true)
  expect(await asked(page, 15)).toBeGreaterThan(2)
  await latch(pds, requestId, '07')
  await page.reload()
  expect(await page.locator('#match-code').innerText()).toBe('07')
})

test('with script there is no button that leads nowhere, until the wallet has approved or the network fails', async () => {
  const { page, decide } = await open()
  const proceed = page.getByRole('button', { name: 'Continue' })
  expect(await proceed.isVisible()).toBe(false)
  await page.context().setOffline(true)
  await Promise.all([page.waitForEvent('requestfailed'), page.clock.runFor(3000)])
  await proceed.waitFor()
  await page.context().setOffline(false)
  await decide()
  await proceed.click()
  await expectSession(page)
})

test('without script, a person continues by hand once the wallet has approved', async () => {
  const { page, decide } = await open({ javaScriptEnabled: false })
  const proceed = page.getByRole('button', { name: 'Continue' })
  await proceed.click()
  await page.getByText('Your wallet has not approved this request yet').waitFor()
  await decide()
  await proceed.click()
  await expectSession(page)
})

test('the number for the wallet stands on the page', async () => {
  const { page, requestId, decide } = await open({ javaScriptEnabled: false })
  await latch(pds, requestId, '07')
  await page.reload()
  expect(await page.locator('#match-code').innerText()).toBe('07')
  await decide('approve', '07')
  await page.getByRole('button', { name: 'Continue' }).click()
  await expectSession(page)
})

test('a link opens the wallet on the same device', async () => {
  const { page, requestId } = await open({ javaScriptEnabled: false })
  const link = page.getByRole('link', { name: 'Open my wallet' })
  expect(await link.getAttribute('href')).toBe(`obsign:/consent?request_id=${requestId}`)
  expect(await page.getByRole('img', { name: 'QR code for your wallet' }).isVisible()).toBe(true)
})

test('whoever has a password signs in below', async () => {
  const { page } = await open()
  await page.getByText('Use your password instead').click()
  await page.getByLabel('Handle or email address').fill(bob.handle)
  await page.getByLabel('Password', { exact: true }).fill(bob.password)
  await page.getByRole('button', { name: 'Allow access' }).click()
  await page.waitForURL(/\/callback\?/)
  const { body } = await client.redeem(new URL(page.url()).searchParams.get('code')!)
  expect(body.sub).toBe(bob.did)
})
