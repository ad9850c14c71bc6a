/** Signing up with the key of a wallet, beside a password or instead of one. */
import { expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { PASSWORD, xrpc } from '../../support/clients/account.ts'
import { deviceKey } from '../../support/clients/wallet.ts'
import { useWorld } from '../../support/world.ts'

const { pds, freshPage } = useWorld({
  browser: true,
  config: { rateLimit: { enabled: false }, accounts: { passwordOptional: true } },
})

async function signUp(name: string, fields: { password?: string; key?: string }): Promise<Page> {
  const page = await freshPage()
  await page.goto(`${pds.url}/account/sign-up`)
  await page.getByLabel('Handle', { exact: true }).fill(name)
  await page.getByLabel('Email address').fill(`${name}@example.com`)
  await page.getByLabel('Password', { exact: true }).fill(fields.password ?? '')
  if (fields.key !== undefined) {
    await page.getByText('I have a wallet').click()
    await page.getByLabel('Public key of your wallet').fill(fields.key)
  }
  await page.getByRole('button', { name: 'Create account' }).click()
  await page.waitForLoadState()
  return page
}

async function rotationKeysOf(handle: string): Promise<string[]> {
  const { body } = await xrpc(pds, `com.atproto.identity.resolveHandle?handle=${handle}`)
  return (await pds.ctx.plc.state(body.did as Did))!.rotationKeys
}

test('a wallet alone makes an account that no password opens', async () => {
  const { did: key } = deviceKey()
  const page = await signUp('keyed', { key })
  await page.getByRole('heading', { name: '@keyed.test' }).waitFor()
  expect((await rotationKeysOf('keyed.test'))[0]).toBe(key)
  expect(await page.getByText('Change password').count()).toBe(0)
  for (const password of ['', PASSWORD]) {
    const answer = await xrpc(pds, 'com.atproto.server.createSession', { json: { identifier: 'keyed.test', password } })
    expect([answer.status, answer.body.error]).toEqual([401, 'AuthenticationRequired'])
  }
})

test('a wallet beside a password ranks above this server', async () => {
  const { did: key } = deviceKey('k256')
  const page = await signUp('both', { key, password: PASSWORD })
  await page.getByRole('heading', { name: '@both.test' }).waitFor()
  expect((await rotationKeysOf('both.test'))[0]).toBe(key)
  const { status } = await xrpc(pds, 'com.atproto.server.createSession', {
    json: { identifier: 'both.test', password: PASSWORD },
  })
  expect(status).toBe(200)
})

test('neither a key nor a password is a mistake, and so is a key that is none', async () => {
  const bare = await signUp('bare', {})
  expect(await bare.getByRole('alert').innerText()).toBe('Please choose a password.')
  const { did: key } = deviceKey()
  for (const wrong of [key.slice(8), key.slice(0, -1), 'did:web:example.com', `${key}x`]) {
    const page = await signUp('wrong', { key: wrong })
    expect(await page.getByRole('alert').innerText()).toStartWith('This is not the public key of a wallet')
    expect(await page.getByLabel('Public key of your wallet').inputValue()).toBe(wrong)
    expect(await page.getByLabel('Public key of your wallet').getAttribute('aria-invalid')).toBe('true')
    await page.context().close()
  }
  const { body } = await xrpc(pds, 'com.atproto.identity.resolveHandle?handle=wrong.test')
  expect(body.error).toBe('HandleNotFound')
})

test('where passwords are required, a wallet does not replace one', async () => {
  await pds.restart({ accounts: { passwordOptional: false } })
  const page = await freshPage()
  await page.goto(`${pds.url}/account/sign-up`)
  expect(await page.getByLabel('Password', { exact: true }).getAttribute('required')).not.toBeNull()
  await page.evaluate('document.querySelector("form").noValidate = true')
  await page.getByLabel('Handle', { exact: true }).fill('strict')
  await page.getByLabel('Email address').fill('strict@example.com')
  await page.getByText('I have a wallet').click()
  await page.getByLabel('Public key of your wallet').fill(deviceKey().did)
  await page.getByRole('button', { name: 'Create account' }).click()
  expect(await page.getByRole('alert').innerText()).toBe('Please choose a password.')
})
