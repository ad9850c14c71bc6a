/** The account page shows the invites that its holder can give away. */
import { expect, test } from 'bun:test'
import { createAccount } from '../../support/clients/account.ts'
import { signIn } from '../../support/clients/browser.ts'
import { basic, request } from '../../support/clients/http.ts'
import { ADMIN_TOKEN } from '../../support/servers/pds.ts'
import { useWorld } from '../../support/world.ts'

const { pds, freshPage } = useWorld({
  browser: true,
  config: { inviteCodeRequired: true, rateLimit: { enabled: false } },
})
const headers = basic('admin', ADMIN_TOKEN)
async function invite(input: object): Promise<string> {
  const { body } = await request(`${pds.url}/xrpc/com.atproto.server.createInviteCode`, { json: input, headers })
  return body.code
}

test('codes that can still be used are shown, and no others', async () => {
  const anna = await createAccount(pds, 'anna', { inviteCode: await invite({ useCount: 1 }) })
  const page = await freshPage()
  await signIn(page, pds, anna)
  expect(await page.locator('#invites').count()).toBe(0)
  const used = await invite({ useCount: 1, forAccount: anna.did })
  const open = await invite({ useCount: 3, forAccount: anna.did })
  await createAccount(pds, 'bert', { inviteCode: used })
  await createAccount(pds, 'carl', { inviteCode: open })
  await page.goto(`${pds.url}/account`)
  const text = await page.locator('#invites').innerText()
  expect(text).toContain(open)
  expect(text).toContain('2 of 3 uses left')
  expect(text).not.toContain(used)
})
