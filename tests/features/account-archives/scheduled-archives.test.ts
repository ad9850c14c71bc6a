/** Archives that the server makes every week or month, for those who want them. */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'bun:test'
import { deleteAccount } from '../../../src/features/identity/account-changes/account-changes.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { createAccount } from '../../support/clients/account.ts'
import { signIn } from '../../support/clients/browser.ts'
import { hiddenFields } from '../../support/clients/oauth-client.ts'
import { CookieBrowser } from '../../support/clients/wallet-sign-in.ts'
import { afterSnapshot, beforeTransaction } from '../../support/interruptions.ts'
import { setUp } from '../../support/set-up.ts'
import { atOneNode } from '../../support/turns.ts'
import { until } from '../../support/until.ts'
import { useWorld } from '../../support/world.ts'
import { archiveIn } from '../../support/zip-reading.ts'

const folder = mkdtempSync(join(tmpdir(), 'archives-'))
afterAll(() => rmSync(folder, { recursive: true }))

const { pds, freshPage } = useWorld({
  browser: true,
  config: { rateLimit: { enabled: false }, archives: { folder, keep: 2 } },
})
const alice = setUp(() => createAccount(pds, 'alice'))
const make = () => pds.runSweep('account-archives')
const own = (did: string) => join(folder, did.replaceAll(':', '_'))
const ready = (to: string) => pds.mails.filter((mail) => mail.to === to && mail.subject.startsWith('An archive'))

test('the holder chooses how often, is mailed, and downloads what was made', async () => {
  expect(await make()).toEqual({ made: 0, failed: 0, withoutRoom: 0 })
  const page = await freshPage({ acceptDownloads: true })
  await signIn(page, pds, alice, { stays: true })
  const unfold = () => page.locator('#archive').evaluate((part) => void (part.closest('details')!.open = true))
  await unfold()
  await page.getByLabel('Have one made regularly').selectOption('weekly')
  await page.locator('#archive').getByRole('button', { name: 'Save' }).click()
  await page.locator('#archive [role=status]').waitFor()
  expect(await make()).toEqual({ made: 1, failed: 0, withoutRoom: 0 })
  expect(await make()).toEqual({ made: 0, failed: 0, withoutRoom: 0 })
  await until(() => ready(alice.email).length === 1)

  const [name] = readdirSync(own(alice.did))
  expect(statSync(join(own(alice.did), name!)).mode & 0o777).toBe(0o600)
  await page.reload()
  await unfold()
  expect(await page.getByLabel('Have one made regularly').inputValue()).toBe('weekly')
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: /^Download the archive of/ }).click(),
  ])
  const bytes = readFileSync(await download.path())
  expect(bytes).toEqual(readFileSync(join(own(alice.did), name!)))
  expect(JSON.parse((await archiveIn(bytes).contents()).get('manifest.json')!.toString())).toMatchObject({
    did: alice.did,
  })
})

test('the newest ones are kept, and none is made for who no longer wants any', async () => {
  const days = async (count: number) => {
    pds.clock.advance({ secs: count * 24 * 3600 })
    return (await make())['made']
  }
  expect([await days(6), await days(1), await days(7), await days(7)]).toEqual([0, 1, 1, 1])
  const names = readdirSync(own(alice.did))
  expect(names).toHaveLength(2)
  await pds.damage('archive_schedule', { did: alice.did }, { every: 'monthly' })
  expect([await days(7), await days(29), await days(1)]).toEqual([1, 0, 1])
  await pds.lose('archive_schedule', { did: alice.did })
  expect(await days(60)).toBe(0)
})

test('an archive that cannot be made stays due, and those of others are made', async () => {
  const bob = await createAccount(pds, 'bob')
  const due = { every: 'weekly', due_at: 1 }
  await pds.plant('archive_schedule', [
    { did: alice.did, ...due },
    { did: bob.did, ...due },
    { did: 'did:plc:aaaaaaaaaaaaaaaaaaaaaaaa', ...due },
  ])
  expect(await make()).toEqual({ made: 2, failed: 1, withoutRoom: 0 })
  expect(await make()).toEqual({ made: 0, failed: 1, withoutRoom: 0 })
  await pds.lose('archive_schedule', { did: 'did:plc:aaaaaaaaaaaaaaaaaaaaaaaa' })
})

test('an archive for which the disk has no room is not begun and stays due, and those of others are made', async () => {
  const [dave, erin] = [await createAccount(pds, 'dave'), await createAccount(pds, 'erin')]
  const LARGEST = 2 ** 31 - 1
  const blobs = Array.from({ length: 20_000 }, (_, at) => ({
    did: dave.did,
    cid: `bafkrei${at.toString(2).replaceAll('0', 'a').replaceAll('1', 'b').padStart(51, 'a')}a`,
    mime_type: 'video/mp4',
    size: LARGEST,
    uploaded_at: 1,
  }))
  await pds.plant('blob', blobs)
  await pds.plant(
    'archive_schedule',
    [dave, erin].map(({ did }) => ({ did, every: 'weekly', due_at: 1 })),
  )
  expect(await make()).toEqual({ made: 1, failed: 0, withoutRoom: 1 })
  expect([readdirSync(own(dave.did)), readdirSync(own(erin.did))]).toEqual([[], [expect.stringMatching(/Z\.zip$/)]])
  expect(ready(dave.email)).toEqual([])
  await pds.lose('blob', { did: dave.did })
  expect(await make()).toEqual({ made: 1, failed: 0, withoutRoom: 0 })
})

test('after the clock was ahead, archives are made and kept as before', async () => {
  const gwen = await createAccount(pds, 'gwen')
  await pds.lose('archive_schedule')
  await pds.plant('archive_schedule', [
    { did: gwen.did, every: 'weekly', due_at: pds.clock.now() + 8 * 24 * 3600 * 1000 },
  ])
  mkdirSync(own(gwen.did))
  for (const day of ['01', '02']) writeFileSync(join(own(gwen.did), `2999-01-${day}T000000Z.zip`), 'of the future')
  const nameNow = () => `${new Date(pds.clock.now()).toISOString().slice(0, 19).replaceAll(':', '')}Z.zip`
  const before = nameNow()
  expect(await make()).toEqual({ made: 1, failed: 0, withoutRoom: 0 })
  const [made, ...others] = readdirSync(own(gwen.did)).toSorted()
  expect([before <= made!, made! <= nameNow(), others]).toEqual([true, true, ['2999-01-02T000000Z.zip']])
  expect(await make()).toEqual({ made: 0, failed: 0, withoutRoom: 0 })
  pds.clock.advance({ secs: 7 * 24 * 3600 })
  expect(await make()).toEqual({ made: 1, failed: 0, withoutRoom: 0 })
  expect(readdirSync(own(gwen.did)).some((name) => name.startsWith('2999'))).toBe(false)
  await pds.lose('archive_schedule', { did: gwen.did })
})

test('what a process that was killed has left of an archive goes with the next one', async () => {
  const carol = await createAccount(pds, 'carol')
  mkdirSync(own(carol.did))
  writeFileSync(join(own(carol.did), '2026-01-01T000000Z.zip.part'), 'the beginning')
  await pds.plant('archive_schedule', [{ did: carol.did, every: 'weekly', due_at: 1 }])
  expect(await make()).toEqual({ made: 1, failed: 0, withoutRoom: 0 })
  expect(readdirSync(own(carol.did))).toEqual([expect.stringMatching(/Z\.zip$/)])
})

test('a deleted account takes its archives along', async () => {
  expect(readdirSync(folder)).toContain(alice.did.replaceAll(':', '_'))
  await deleteAccount({ ctx: pds.ctx }, alice.did as Did)
  await until(() => !readdirSync(folder).includes(alice.did.replaceAll(':', '_')))
  expect(await pds.count('archive_schedule', { did: alice.did })).toBe(0)
})

test('nothing is scheduled for an account that is deleted before its form takes effect', async () => {
  const frank = await createAccount(pds, 'frank')
  const browser = new CookieBrowser(pds)
  await browser.send('/account/sign-in', { identifier: frank.handle, password: frank.password })
  const { form_token = '' } = hiddenFields((await browser.open('/account')).body)
  using _ = atOneNode(pds, 'the transactions of one node are interrupted')
  using __ = beforeTransaction(pds, () => deleteAccount({ ctx: pds.ctx }, frank.did as Did))
  await browser.send('/account/archive/schedule', { account: frank.did, form_token, every: 'weekly' })
  expect(await pds.count('archive_schedule', { did: frank.did })).toBe(0)
})

test('an account that is deleted while its archive is made leaves none', async () => {
  const grace = await createAccount(pds, 'grace')
  await pds.plant('archive_schedule', [{ did: grace.did, every: 'weekly', due_at: 1 }])
  using _ = atOneNode(pds, 'what one node reads is interrupted')
  using __ = afterSnapshot(pds, () => deleteAccount({ ctx: pds.ctx }, grace.did as Did))
  expect((await make())['failed']).toBe(0)
  expect(readdirSync(folder)).not.toContain(grace.did.replaceAll(':', '_'))
})
