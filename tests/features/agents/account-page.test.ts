/** The part of the account page about agents, as a person without scripts uses it. */
import { expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { createAccount, type TestAccount } from '../../support/clients/account.ts'
import { createPost, registerAgent } from '../../support/clients/registered-agent.ts'
import { useWorld } from '../../support/world.ts'
import { unaskedIssuer } from '../../support/servers/issuer.ts'
import { signIn } from '../../support/clients/browser.ts'

const { pds, freshPage } = useWorld({
  browser: true,
  config: { agentAuth: { anonymousEnabled: true, trustedIssuers: [unaskedIssuer] }, rateLimit: { enabled: false } },
})

async function signedIn(account: TestAccount): Promise<Page> {
  const page = await freshPage()
  await signIn(page, pds, account)
  return page
}

const textOf = async (page: Page, selector: string) =>
  (await page.locator(selector).innerText()).replaceAll(/\s+/g, ' ')

test('the holder reads what an agent may do and did, and ends it', async () => {
  const ann = await createAccount(pds, 'ann')
  const agent = await registerAgent(pds, ann, {
    type: 'identity_assertion',
    issuer: 'https://idp.test',
    subject: '<b>helper</b>',
  })
  await agent.call('com.atproto.repo.createRecord', createPost(ann.did))
  await agent.call('com.atproto.repo.uploadBlob', {
    method: 'POST',
    body: 'text',
    headers: { 'content-type': 'text/plain' },
  })
  const page = await signedIn(ann)
  expect(await textOf(page, '#agents')).toMatch(/<b>helper<\/b>, vouched for by https:\/\/idp\.test Since .* last used/)
  await page.locator('#agents').getByText('What it may do').click()
  const words = await textOf(page, '#agents')
  for (const phrase of ['Know who you are', 'Create and change any of your public data', 'Upload files of any kind'])
    expect(words).toContain(phrase)

  await page.getByRole('link', { name: 'What it did' }).click()
  expect(await page.locator('li strong').allInnerTexts()).toEqual([
    'It uploaded a file (text/plain, 4 bytes)',
    'It created 1: posts',
  ])
  await page.getByRole('link', { name: 'Back to your account' }).click()

  await page.getByRole('button', { name: /^End access/ }).click()
  await page.waitForURL(/done=agent/)
  expect(await textOf(page, '#agents')).toContain('The program no longer has access.')
  expect((await agent.call('com.atproto.server.getSession')).status).toBe(401)
  await page.locator('#agents').getByText('Ended', { exact: true }).click()
  await page.getByRole('link', { name: 'What it did' }).click()
  expect((await page.locator('li strong').allInnerTexts())[0]).toBe('Its access was ended')
})

test('a long record comes in pages', async () => {
  const bob = await createAccount(pds, 'bob')
  const agent = await registerAgent(pds, bob)
  for (let i = 0; i < 51; i++) await agent.call('com.atproto.repo.createRecord', createPost(bob.did, `${i}`))
  const page = await signedIn(bob)
  const account = page.url()
  await page.getByRole('link', { name: 'What it did' }).click()
  await page.waitForURL(({ href }) => href !== account)
  expect(await page.locator('li').count()).toBe(50)
  const newest = page.url()
  await page.getByRole('link', { name: 'Older' }).click()
  await page.waitForURL(({ href }) => href !== newest)
  expect(await page.locator('li').count()).toBe(1)
  expect(await page.getByRole('link', { name: 'Older' }).count()).toBe(0)
})

test('an agent that nobody has confirmed is said to wait, and without agents there is no such part', async () => {
  const carol = await createAccount(pds, 'carol')
  const page = await signedIn(carol)
  expect(await page.locator('#agents').count()).toBe(0)
  await registerAgent(pds, carol, { type: 'service_auth', status: 'active', confirmedAt: null })
  await page.reload()
  const words = await textOf(page, '#agents')
  expect(words).toContain('It can do nothing until you enter the code that it shows.')
  expect(words).not.toContain('What it may do')
})

test('nobody reads or ends the agents of others', async () => {
  const [dave, eve] = [await createAccount(pds, 'dave'), await createAccount(pds, 'eve')]
  const [its, own] = [await registerAgent(pds, dave), await registerAgent(pds, eve)]
  const page = await signedIn(eve)
  const answer = await page.goto(`${pds.url}/account/agents/record?id=${its.id}`)
  expect(answer!.status()).toBe(404)
  await page.goto(`${pds.url}/account`)
  const form = page.locator('#agents form')
  const fields = Object.fromEntries(
    await Promise.all(
      ['form_token', 'account'].map(
        async (name) => [name, await form.locator(`[name=${name}]`).getAttribute('value')] as const,
      ),
    ),
  )
  const sent = await page.request.post(`${pds.url}/account/agents`, {
    form: { ...(fields as Record<string, string>), id: its.id },
    headers: { origin: pds.url },
  })
  expect(sent.status()).toBeLessThan(400)
  expect((await its.call('com.atproto.server.getSession')).status).toBe(200)
  expect((await own.call('com.atproto.server.getSession')).status).toBe(200)
})
