/** Recovery by pages: the share in escrow on the page of the identity, and the pages that hand it out. */
import { expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { Secret } from '../../../src/base/secret.ts'
import type { TestAccount } from '../../support/clients/account.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { startPds } from '../../support/servers/pds.ts'
import { sovereignAccount } from '../../support/clients/wallet.ts'
import vector from '../../vectors/contract/escrow-at-rest-v1.json' with { type: 'json' }
import { useWorld } from '../../support/world.ts'
import { signIn } from '../../support/clients/browser.ts'

const SHARE = vector.submittedShareBase32
const HOURS_24 = 24 * 3600

const { pds, freshPage } = useWorld({
  browser: true,
  config: { rateLimit: { enabled: false }, signingKeyMasterKey: new Secret(Buffer.from(vector.masterKeyHex, 'hex')) },
})

async function holderWithShare(name: string): Promise<TestAccount> {
  const account = await sovereignAccount(pds, name)
  const { status } = await request(`${pds.url}/v1/recovery/escrow-share`, {
    method: 'PUT',
    json: { share: SHARE },
    headers: bearer(account.accessJwt),
  })
  expect(status).toBe(200)
  return account
}

async function identityPage(account: TestAccount): Promise<Page> {
  const page = await freshPage()
  await signIn(page, pds, account)
  await page.getByRole('link', { name: 'Who can move this account' }).click()
  await page.getByRole('heading', { name: 'Recovery share' }).waitFor()
  return page
}

/** The newest recovery code that was mailed to the account. */
async function mailedCode({ email }: TestAccount): Promise<string> {
  await pds.runSteps()
  await pds.runSteps()
  return pds.mails
    .filter(({ to }) => to === email)
    .flatMap(({ text }) => text.match(/^[\w-]{43}$/m) ?? [])
    .at(-1)!
}

async function submit(page: Page, code: string): Promise<string> {
  await page.getByLabel('Code from the email').fill(code)
  await page.getByRole('button', { name: 'Continue' }).click()
  await page.waitForLoadState()
  return (
    await page
      .getByRole(/^[^]*class="note error/.test(await page.content()) ? 'alert' : 'status')
      .first()
      .innerText()
  ).trim()
}

test('who has lost the wallet gets the share, after a code by mail and a day, for an hour', async () => {
  const account = await holderWithShare('lost')
  const page = await freshPage()
  await page.goto(`${pds.url}/account/sign-in`)
  await page.getByRole('link', { name: 'Lost your wallet?' }).click()
  await page.getByLabel('Handle or DID').fill('@lost.test')
  await page.getByRole('button', { name: 'Send a code' }).click()
  await page.getByText('If this account exists').waitFor()
  const code = await mailedCode(account)
  expect(await submit(page, code)).toContain('You can collect the share from')
  expect(await submit(page, '')).toContain('You can collect the share from')
  pds.clock.advance({ secs: HOURS_24 })
  const again = async () => {
    await page.goto(`${pds.url}/account/recovery/share?identifier=lost.test`)
    return submit(page, '')
  }
  expect(await submit(page, '')).toContain(SHARE)
  expect(await again()).toContain(SHARE)
  pds.clock.advance({ secs: 3600 })
  expect(await again()).toStartWith('The handle or the code is wrong')
})

test('whatever is wrong, the page says the same', async () => {
  const account = await sovereignAccount(pds, 'bare')
  const page = await freshPage()
  const said = new Set<string>()
  for (const [identifier, code] of [
    ['nobody.test', 'A'.repeat(43)],
    ['bare.test', 'A'.repeat(43)],
    ['bare.test', 'nonsense'],
    [account.did, ''],
    ['', ''],
  ] as const) {
    await page.goto(`${pds.url}/account/recovery/share`)
    await page.evaluate('document.querySelector("form").noValidate = true')
    await page.getByLabel('Handle or DID').fill(identifier)
    said.add(await submit(page, code))
  }
  expect([...said]).toEqual(['The handle or the code is wrong. Please check both, or request a new code.'])
})

test('the holder sees a release in flight, and cancels it', async () => {
  const account = await holderWithShare('watchful')
  const page = await identityPage(account)
  await page.getByText('has held a share since').waitFor()
  await page.getByRole('button', { name: 'Start recovery' }).click()
  await page.getByText('If this account exists').waitFor()
  expect(await submit(page, await mailedCode(account))).toContain('collect the share from')
  await page.goto(`${pds.url}/account/identity`)
  await page.getByText('Someone requested your share').waitFor()
  await page.getByRole('button', { name: 'Cancel the release' }).click()
  await page.getByText('has held a share since').waitFor()
  pds.clock.advance({ secs: HOURS_24 })
  await page.goto(`${pds.url}/account/recovery/share?identifier=watchful.test`)
  expect(await submit(page, '')).toStartWith('The handle or the code is wrong')
})

test('the holder deletes the share', async () => {
  const page = await identityPage(await holderWithShare('leaver'))
  await page.getByRole('button', { name: 'Delete the share' }).click()
  await page.getByText('has no share of your recovery key').waitFor()
  expect(await page.getByRole('button', { name: 'Start recovery' }).count()).toBe(0)
})

test('where no master key is configured, there is nothing of this', async () => {
  await using plain = await startPds({}, { alone: 'it has no master key' })
  expect((await request(`${plain.url}/account/recovery`)).status).toBe(404)
  expect((await request(`${plain.url}/account/sign-in`)).body).not.toContain('Lost your wallet')
})

test('where there is no delay, the page promises no waiting time', async () => {
  await using prompt = await startPds({
    signingKeyMasterKey: new Secret(new Uint8Array(32).fill(7)),
    recovery: { releaseDelaySecs: 0 },
  })
  const [promptly, later] = await Promise.all([prompt, pds].map(({ url }) => request(`${url}/account/recovery/share`)))
  expect(promptly!.body).toContain('you get the share at once')
  expect(promptly!.body).not.toContain('starts a waiting period')
  expect(later!.body).toContain('starts a waiting period')
})
