/** The page on which account holders see how the network sees them. */
import { expect, test } from 'bun:test'
import { createAccount } from '../../support/clients/account.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'

const {
  pds,
  other: relay,
  appview,
  freshPage,
} = useWorld({
  other: true,
  appview: true,
  browser: true,
  config: ({ other, appview }) => ({
    crawlers: { urls: [other.url] },
    appview: { url: appview.url },
    contact: { email: 'operator@example.org' },
  }),
})
const alice = setUp(() => createAccount(pds, 'alice'))

async function openPage() {
  const page = await freshPage()
  await page.goto(`${pds.url}/account/network`)
  await page.getByLabel('Handle or email address').fill(alice.handle)
  await page.getByLabel('Password', { exact: true }).fill(alice.password)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.waitForURL(`${pds.url}/account`)
  await page.getByRole('link', { name: 'How the network sees you' }).click()
  await page.getByRole('heading', { name: 'How the network sees you' }).waitFor()
  return page
}

test('a holder sees each link, what they can do, and whom to tell otherwise', async () => {
  pds.dns.setHandle(alice.handle, alice.did)
  appview.answer('app.bsky.actor.getProfile', () => Response.json({ did: alice.did, handle: 'handle.invalid' }))
  const page = await openPage()
  const text = await page.locator('main').innerText()
  expect(text).toContain('Handle: works')
  expect(text).toContain(
    'The AppView could not verify the handle\nWhat to do: set your handle again on your account page.',
  )
  // The server of the test has no name that a relay can reach.
  expect(text).toContain('Relays: broken')
  expect(text).toContain('tell the operator of this server (operator@example.org)')
  expect(text).not.toContain('holdfast ')
  expect(relay.received).toEqual([])
})

test('the page is for those who are signed in, and each address may look twenty times in five minutes', async () => {
  const visit = () =>
    fetch(`${pds.url}/account/network`, {
      redirect: 'manual',
      headers: { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' },
    })
  const first = await visit()
  expect([first.status, new URL(first.headers.get('location')!, pds.url).pathname]).toEqual([303, '/account/sign-in'])
  let status = 0
  for (let i = 0; i < 25 && status !== 429; i++) ({ status } = await visit())
  expect(status).toBe(429)
})
