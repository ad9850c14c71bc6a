/** What a person who leaves finds on the account page: a pause that can be undone, and deletion, which cannot. */
import { expect, test } from 'bun:test'
import { createAccount, xrpc } from '../../support/clients/account.ts'
import { signIn } from '../../support/clients/browser.ts'
import { lastCode } from '../../support/servers/mail.ts'
import { useWorld } from '../../support/world.ts'

const { pds, freshPage } = useWorld({ browser: true, config: { rateLimit: { enabled: false } } })

const statusOf = async (did: string) => (await xrpc(pds, `com.atproto.sync.getRepoStatus?did=${did}`)).body

test('a person deactivates the account, and reactivates it', async () => {
  const anna = await createAccount(pds, 'anna')
  const page = await freshPage()
  await signIn(page, pds, anna)
  await page.getByText('Deactivate account', { exact: true }).first().click()
  await page.getByRole('button', { name: 'Deactivate account' }).click()
  expect(await page.getByRole('status').innerText()).toContain('deactivated')
  expect(await statusOf(anna.did)).toMatchObject({ active: false, status: 'deactivated' })
  expect(await page.getByRole('button', { name: 'Deactivate account' }).count()).toBe(0)
  await page.getByRole('button', { name: 'Reactivate account' }).click()
  expect(await statusOf(anna.did)).toMatchObject({ active: true })
})

test('a person deletes the account with the mailed code and the password, and with nothing less', async () => {
  const bert = await createAccount(pds, 'bert')
  const page = await freshPage()
  await signIn(page, pds, bert)
  await page.getByText('Delete account', { exact: true }).first().click()
  await page.getByRole('button', { name: 'Request a code' }).click()
  const code = (await lastCode(pds, bert.email))!
  const confirm = async (typed: string, password: string) => {
    await page.locator('#delete-code').fill(typed)
    await page.locator('#delete-password').fill(password)
    await page.getByRole('button', { name: 'Delete account for ever' }).click()
  }
  for (const [typed, password] of [
    ['AAAAA-BBBBB', bert.password],
    [code, 'not the password'],
  ] as const) {
    await confirm(typed, password)
    expect(await page.getByRole('alert').innerText()).toContain('is wrong')
    expect(await statusOf(bert.did)).toMatchObject({ active: true })
  }
  await confirm(code, bert.password)
  expect(await page.getByRole('status').innerText()).toStartWith('Your account is deleted. With an archive')
  expect(await page.getByRole('link', { name: 'bring it back' }).getAttribute('href')).toBe('/account/move-here/backup')
  expect(await statusOf(bert.did)).toMatchObject({ error: 'RepoNotFound' })
})
