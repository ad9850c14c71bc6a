/** Signing in to the account page with a wallet, in a browser: with the page's script, and without. */
import { expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { decisionOf, sendDecision } from '../../support/clients/wallet-consent.ts'
import { walletHolder } from '../../support/clients/wallet-holder.ts'
import { sovereignAccount } from '../../support/clients/wallet.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'

const { pds, plc, freshPage } = useWorld({
  plc: true,
  browser: true,
  config: { rateLimit: { enabled: false }, accounts: { passwordOptional: true } },
})
/** Has no password. */
const alice = setUp(() => sovereignAccount(pds, 'alice', { password: undefined }))

async function begin(
  page: Page,
): Promise<{ requestId: string; clientId: string; matchCode: string; userCode: string }> {
  await page.goto(`${pds.url}/account/sign-in`)
  await page.getByRole('button', { name: 'Use your wallet instead' }).click()
  await page.waitForURL(/\/account\/sign-in\/wallet\?/)
  const requestId = (await page.locator('[data-request-id]').getAttribute('data-request-id'))!
  const [matchCode, userCode] = [
    await page.locator('#match-code').innerText(),
    await page.locator('.user-code').innerText(),
  ]
  return { requestId, clientId: pds.url, matchCode, userCode }
}

async function decide(
  begun: Awaited<ReturnType<typeof begin>>,
  decision: 'approve' | 'deny' = 'approve',
): Promise<void> {
  const choice = { decision, ...(decision === 'approve' && { grantedScope: 'atproto', matchCode: begun.matchCode }) }
  const { status } = await sendDecision(pds, decisionOf(pds, alice, begun, choice))
  if (status !== 200) throw new Error(`the decision was answered ${status}`)
}

/** Let the page’s script and the server see time pass, and wait until the script has asked. */
async function poll(page: Page, secs: number): Promise<void> {
  pds.clock.advance({ secs })
  await Promise.all([page.waitForResponse(/\/oauth\/authorize\/status/), page.clock.runFor(secs * 1000)])
}

const expectAccount = async (page: Page, did: string): Promise<void> => {
  await page.waitForURL(`${pds.url}/account`)
  expect(await page.locator('#account code').innerText()).toBe(did)
}

test('the page continues by itself once the wallet has approved', async () => {
  const page = await freshPage({ javaScriptEnabled: true })
  await page.clock.install()
  const begun = await begin(page)
  await page.getByLabel('Stay signed in').check()
  await poll(page, 3)
  expect(await page.getByRole('status').innerText()).toContain('Waiting for your wallet')
  await decide(begun)
  await poll(page, 3)
  await expectAccount(page, alice.did)
  const [cookie] = (await page.context().cookies()).filter(({ name }) => name === 'holdfast')
  expect(cookie!.expires).toBeGreaterThan(0)
})

test('the page says so when the wallet denies', async () => {
  const page = await freshPage({ javaScriptEnabled: true })
  await page.clock.install()
  await decide(await begin(page), 'deny')
  await poll(page, 3)
  await page.getByText('Denied in your wallet').waitFor()
  expect(await page.getByRole('button', { name: 'Continue to your account' }).isVisible()).toBe(false)
})

test('without script, a person continues by hand, with the wallet of the command line', async () => {
  using holder = await walletHolder(pds, plc.url, 'walter', { password: undefined })
  const page = await freshPage()
  const { userCode, matchCode } = await begin(page)
  const proceed = page.getByRole('button', { name: 'Continue to your account' })
  await proceed.click()
  expect(await page.getByRole('alert').innerText()).toContain('Your wallet has not approved this request yet')
  const shown = await holder.user.do(['approve', userCode], { answers: { number: matchCode, Approve: 'yes' } })
  expect(shown).toContain('Account page of holdfast')
  expect(shown).toContain('approving it signs that browser in to your account page')
  await proceed.click()
  await expectAccount(page, holder.account.did)
})

test('a sign-in of a week ago is renewed with the wallet, and the page asks for no password', async () => {
  const page = await freshPage()
  const first = await begin(page)
  await page.getByLabel('Stay signed in').check()
  await decide(first)
  await page.getByRole('button', { name: 'Continue to your account' }).click()
  await expectAccount(page, alice.did)
  pds.clock.advance({ days: 8 })
  await page.goto(`${pds.url}/account/identity`)
  await page.getByRole('heading', { name: 'Sign in again' }).waitFor()
  expect(await page.locator('input[type=password]').count()).toBe(0)
  await page.getByRole('button', { name: 'Use your wallet' }).click()
  await page.waitForURL(/\/account\/sign-in\/wallet\?/)
  const requestId = (await page.locator('[data-request-id]').getAttribute('data-request-id'))!
  await decide({ ...first, requestId, matchCode: await page.locator('#match-code').innerText() })
  await page.getByRole('button', { name: 'Continue to your account' }).click()
  await expectAccount(page, alice.did)
})
