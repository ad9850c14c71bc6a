/** The account page makes app passwords that are limited, and says what each may do, until when. */
import { expect, test } from 'bun:test'
import { createAccount, logIn } from '../../support/clients/account.ts'
import { signIn } from '../../support/clients/browser.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'

const { pds, freshPage } = useWorld({ browser: true, config: { rateLimit: { enabled: false } } })
const alice = setUp(() => createAccount(pds, 'alice'))

const opened = async () => {
  const page = await freshPage()
  await signIn(page, pds, alice)
  await page.getByText('New app password').click()
  return page
}
const listed = async (name: string) => {
  const { body } = await request(`${pds.url}/v1/app-passwords`, { headers: bearer(alice.accessJwt) })
  return body.appPasswords.find((each: { name: string }) => each.name === name)
}
const dayAfter = (days: number) => new Date(pds.clock.now() + days * 86_400_000).toISOString().slice(0, 10)

test('a person ticks what an app password may do, sets its last day, and reads both later', async () => {
  const page = await opened()
  await page.getByLabel('Name', { exact: true }).fill('weather bot')
  await page.getByRole('checkbox', { name: 'Create posts' }).check()
  await page.getByRole('checkbox', { name: 'Upload images' }).check()
  const lastDay = dayAfter(30)
  await page.getByLabel('Last day').fill(lastDay)
  await page.getByRole('button', { name: 'Create app password' }).click()
  const secret = (await page.locator('.secret').textContent())!
  expect(await listed('weather bot')).toMatchObject({
    scope: 'atproto repo:app.bsky.feed.post?action=create blob:image/*',
    expiresAt: `${lastDay}T23:59:59.999Z`,
  })
  await logIn(pds, alice, secret)
  await page.goto(`${pds.url}/account`)
  const row = page.locator('#app-passwords li').filter({ hasText: 'weather bot' }).first()
  expect(await row.innerText()).toMatch(/last used .*\n+Ends /)
  await row.getByText('What it may do').click()
  expect(await row.getByRole('listitem').allInnerTexts()).toEqual(['Create posts', 'Upload images'])
})

test('without limits it is one of the standard, and with messages alone it keeps all that apps do', async () => {
  const page = await opened()
  await page.getByLabel('Name', { exact: true }).fill('old app')
  await page.getByRole('button', { name: 'Create app password' }).click()
  await page.locator('.secret').waitFor()
  expect(await listed('old app')).toMatchObject({ privileged: false })
  await page.getByText('New app password').click()
  await page.getByLabel('Name', { exact: true }).fill('messenger')
  await page.getByRole('checkbox', { name: 'May read and send direct messages' }).check()
  await page.getByLabel('Last day').fill(dayAfter(1))
  await page.getByRole('button', { name: 'Create app password' }).click()
  await page.locator('.secret').waitFor()
  expect(await listed('messenger')).toMatchObject({ scope: 'atproto transition:generic transition:chat.bsky' })
})

test('a scope that no app password may have, and a day that has passed, are told at their fields', async () => {
  const page = await opened()
  await page.getByLabel('Name', { exact: true }).fill('greedy')
  await page.getByRole('checkbox', { name: 'Read what you see in apps' }).check()
  await page.getByLabel('Further scopes').fill('identity:*')
  await page.getByRole('button', { name: 'Create app password' }).click()
  expect(await page.getByLabel('Further scopes').getAttribute('aria-invalid')).toBe('true')
  expect(await page.getByRole('checkbox', { name: 'Read what you see in apps' }).isChecked()).toBe(true)
  expect(await page.getByRole('alert').innerText()).toContain('scopes')
  await page.getByLabel('Further scopes').fill('')
  await page.getByLabel('Last day').fill('2020-01-01')
  await page.getByRole('button', { name: 'Create app password' }).click()
  expect(await page.getByLabel('Last day').getAttribute('aria-invalid')).toBe('true')
  expect(await listed('greedy')).toBeUndefined()
})
