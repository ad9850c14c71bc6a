/** The download on the account page, in a real browser. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'bun:test'
import { createAccount } from '../../support/clients/account.ts'
import { signIn } from '../../support/clients/browser.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'
import { archiveIn } from '../../support/zip-reading.ts'
import { atOneNode } from '../../support/turns.ts'

/** Exports of an account in an hour. */
const IN_AN_HOUR = 10

const { pds, freshPage } = useWorld({ browser: true })
const alice = setUp(() => createAccount(pds, 'alice'))

test('the holder downloads the archive, without scripts, and learns when it was too often', async () => {
  using _ = atOneNode(pds, 'the last request of a limit is counted, and each node may let one more through')
  const page = await freshPage({ acceptDownloads: true })
  await signIn(page, pds, alice, { stays: true })
  const ask = async () => {
    await page.locator('#archive').evaluate((part) => (part.closest('details')!.open = true))
    await page.getByRole('button', { name: 'Download' }).click()
  }
  for (let i = 0; i < IN_AN_HOUR; i++) {
    const [download] = await Promise.all([page.waitForEvent('download'), ask()])
    expect(download.suggestedFilename()).toMatch(/^alice\.test-.*\.zip$/)
    const files = await archiveIn(readFileSync(await download.path())).contents()
    expect(JSON.parse(files.get('account.json')!.toString())).toMatchObject({ did: alice.did })
  }
  await ask()
  await page.locator('#archive [role=alert]').waitFor()
  expect(await page.locator('#archive [role=alert]').textContent()).toContain('Too many attempts')
})
