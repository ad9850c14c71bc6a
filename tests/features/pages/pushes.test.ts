/** The part of the account page about devices that are told by pushes, as a person without scripts uses it. */
import { expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { createAccount, type TestAccount } from '../../support/clients/account.ts'
import { bearer, request } from '../../support/clients/http.ts'
import type { TestPds } from '../../support/servers/pds.ts'
import { registerDevices, RELAY } from '../../support/clients/queued.ts'
import { useWorld } from '../../support/world.ts'
import { signIn } from '../../support/clients/browser.ts'

const { pds, freshPage } = useWorld({
  browser: true,
  config: { notifications: { relay: RELAY }, rateLimit: { enabled: false } },
})

async function signedIn(account: TestAccount, at: TestPds = pds): Promise<Page> {
  const page = await freshPage({ javaScriptEnabled: false })
  await signIn(page, at, account)
  return page
}

const unregister = ({ accessJwt }: TestAccount, name: string) =>
  request(`${pds.url}/v1/notifications/register/${name}`, { method: 'DELETE', headers: bearer(accessJwt) })

test('the holder sees the devices of the account and removes one', async () => {
  const [ann, ben] = [await createAccount(pds, 'ann'), await createAccount(pds, 'ben')]
  await registerDevices(pds, ann, ['phone', '<b>tablet</b>'])
  await registerDevices(pds, ben, ['elsewhere'])
  const page = await signedIn(ann)
  const rows = () => page.locator('#pushes li').allInnerTexts()
  expect((await rows()).toSorted()).toEqual([
    expect.stringMatching(/org\.example\.wallet[^]*Device <b>tablet<\/b>/),
    expect.stringContaining('Device phone'),
  ])
  await page.getByRole('button', { name: 'Remove the device phone of org.example.wallet' }).click()
  expect(await page.getByText('The device no longer receives notifications.').count()).toBe(1)
  expect(await rows()).toHaveLength(1)
  expect((await unregister(ann, 'phone')).body).toEqual({ status: 'absent' })
  await page.getByRole('button', { name: 'Remove' }).click()
  expect(await page.getByText('No device is registered.').count()).toBe(1)
  expect((await unregister(ben, 'elsewhere')).body).toEqual({ status: 'deleted' })
})

test('the page tells when a device was last notified', async () => {
  const fay = await createAccount(pds, 'fay')
  await registerDevices(pds, fay, ['phone'])
  await pds.damage('push_registration', { owner: fay.did }, { pushed_at: Date.UTC(2026, 2, 3) })
  expect(await (await signedIn(fay)).locator('#pushes li').innerText()).toContain('last notified 3 Mar 2026')
})

test('a holder removes no device of another account', async () => {
  const [cat, dan] = [await createAccount(pds, 'cat'), await createAccount(pds, 'dan')]
  await registerDevices(pds, cat, ['phone of cat'])
  await registerDevices(pds, dan, ['phone'])
  const page = await signedIn(cat)
  await page.evaluate('document.querySelector("#pushes input[name=id]").value = "phone"')
  await page.getByRole('button', { name: 'Remove' }).click()
  await page.getByText('The device no longer receives notifications.').waitFor()
  expect((await unregister(dan, 'phone')).body).toEqual({ status: 'deleted' })
  expect(await page.locator('#pushes li').count()).toBe(1)
})

test('the page says nothing of notifications to an account without devices, nor without a relay', async () => {
  const eve = await createAccount(pds, 'eve')
  expect(await (await signedIn(eve)).locator('#pushes').count()).toBe(0)
  await registerDevices(pds, eve, ['phone'])
  await pds.restart({ notifications: { relay: null } })
  expect(await (await signedIn(eve)).locator('#pushes').count()).toBe(0)
  await pds.restart()
})
