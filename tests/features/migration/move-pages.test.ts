/** Moving an account here in a browser, without scripts, on a small screen and a wide one. */
import { randomBytes } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'bun:test'
import { AtpAgent } from '@atproto/api'
import type { Page } from 'playwright-core'
import { axeFaults } from '../../support/clients/accessibility.ts'
import { createAccount, logIn, type TestAccount } from '../../support/clients/account.ts'
import { signIn } from '../../support/clients/browser.ts'
import { basic, bearer, request } from '../../support/clients/http.ts'
import { settleIn } from '../../support/clients/migration.ts'
import { lastOperation } from '../../support/clients/rotating.ts'
import { deviceKey } from '../../support/clients/wallet.ts'
import { startLyingHost } from '../../support/faults/lying-host.ts'
import { lastCode } from '../../support/servers/mail.ts'
import { ADMIN_TOKEN, startPds } from '../../support/servers/pds.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'
import { formatDidKey, signingKey } from '../../../src/protocol/keys.ts'
import type { Operation } from '../../../src/protocol/plc.ts'
import { formatSecretMultikey } from '../../../src/protocol/secret-multikey.ts'

/** Where to put pictures of the pages, for somebody to look at. */
const { SCREENSHOT_DIR } = process.env
const SIZES = [
  { width: 320, height: 640 },
  { width: 360, height: 740 },
  { width: 768, height: 1024 },
  { width: 1280, height: 900 },
]

const { pds, plc, freshPage } = useWorld({
  plc: true,
  browser: true,
  config: { rateLimit: { enabled: false }, inviteCodeRequired: true },
})
const host = setUp(startLyingHost)
const old = setUp(async () => {
  const behind = await startPds({ plcDirectoryUrl: plc.url, rateLimit: { enabled: false } }, { publicUrl: host.url })
  host.to = behind.url
  return behind
})

const NEW = 'another long enough password'
let names = 0
async function someone(): Promise<TestAccount> {
  return createAccount(old, `mover${names++}`)
}

/** Takes pictures at all sizes, and looks for what keeps people from using the page. */
async function look(page: Page, name: string): Promise<void> {
  for (const size of SIZES) {
    await page.setViewportSize(size)
    const overflow = await page.evaluate('document.scrollingElement.scrollWidth - innerWidth')
    expect({ name, size: size.width, overflow }).toEqual({ name, size: size.width, overflow: 0 })
    if (SCREENSHOT_DIR === undefined) continue
    mkdirSync(SCREENSHOT_DIR, { recursive: true })
    await page.screenshot({ path: join(SCREENSHOT_DIR, `${name}-${size.width}.png`), fullPage: true })
  }
}

async function signInAtOldServer(page: Page, from: TestAccount, code: string): Promise<void> {
  await page.goto(`${pds.url}/account/move-here?invite_code=${code}`)
  await page.getByLabel('Your handle now').fill(from.did)
  await page.getByLabel('Password at the old server').fill(from.password)
  await page.getByRole('button', { name: 'Show me the plan' }).click()
}

async function begin(page: Page, from: TestAccount, handle: string): Promise<void> {
  await signInAtOldServer(page, from, await inviteCode())
  await page.getByLabel('Handle here').fill(handle)
  await page.getByLabel('New password for this server').fill(NEW)
  await page.getByRole('button', { name: 'Begin the move' }).click()
  await page.waitForURL(/account\/move\?/)
}

/** A code of the operator. */
async function inviteCode(): Promise<string> {
  const { body } = await request(`${pds.url}/xrpc/com.atproto.server.createInviteCode`, {
    json: { useCount: 1 },
    headers: basic('admin', ADMIN_TOKEN),
  })
  return body.code
}

describe('a person who has a link with an invite code', () => {
  test('moves in: sees the plan, begins, enters the code, and is signed in', async () => {
    const from = await someone()
    const page = await freshPage()
    await signInAtOldServer(page, from, await inviteCode())
    await page.getByText('Comes along').waitFor()
    expect(await page.getByLabel('Email address').inputValue()).toBe(from.email)
    expect(await page.getByLabel('Invite code').inputValue()).not.toBe('')
    await look(page, 'plan')
    await page.getByLabel('Handle here').fill(`${from.handle.split('.')[0]}-here.test`)
    await page.getByLabel('New password for this server').fill(NEW)
    await page.getByRole('button', { name: 'Begin the move' }).click()
    await page.waitForURL(/account\/move\?/)
    await pds.runSteps()
    await page.reload()
    await page.getByText('Your turn').waitFor()
    await look(page, 'your-turn')
    for (const [value, turn] of [
      ['ja', 'あなたの番です'],
      ['en', 'Your turn'],
    ] as const) {
      await page.context().addCookies([{ name: 'holdfast-language', value, url: pds.url }])
      await page.reload()
      expect(await page.locator('html').getAttribute('lang')).toBe(value)
      await page.getByText(turn).waitFor()
    }

    await page.getByLabel('Code from the email').fill('AAAAA-BBBBB')
    await page.getByRole('button', { name: 'Change my identity' }).click()
    await page.getByRole('alert').waitFor()
    await look(page, 'wrong-code')
    await page.getByLabel('Code from the email').fill(await lastCode(old, from.email))
    await page.getByRole('button', { name: 'Change my identity' }).click()
    await pds.runSteps()
    await page.reload()
    await page.getByText('Welcome').waitFor()
    await look(page, 'moved')
    await page.getByRole('link', { name: 'Your account', exact: true }).click()
    await page
      .getByText(`@${from.handle.split('.')[0]}-here.test`)
      .first()
      .waitFor()
    const there = await request(`${old.url}/xrpc/com.atproto.sync.getRepoStatus?did=${from.did}`)
    expect(there.body).toMatchObject({ active: false })
  })

  test('sees at the form what is wrong, and loses nothing', async () => {
    const from = await someone()
    const page = await freshPage()
    await signInAtOldServer(page, { ...from, password: 'wrong' }, await inviteCode())
    await page.getByRole('alert').waitFor()
    await look(page, 'wrong-password')
    expect(await page.getByLabel('Your handle now').inputValue()).toBe(from.did)
    await page.getByLabel('Password at the old server').fill(from.password)
    await page.getByRole('button', { name: 'Show me the plan' }).click()
    await page.getByLabel('Handle here').fill('-')
    await page.getByLabel('New password for this server').fill(NEW)
    await page.getByRole('button', { name: 'Begin the move' }).click()
    await page.getByRole('alert').waitFor()
    expect(await page.getByLabel('Handle here').getAttribute('aria-invalid')).toBe('true')
    await look(page, 'wrong-handle')
  })

  test('is asked for the code of a second factor', async () => {
    const from = await someone()
    host.lie = async (nsid, asked) => {
      if (nsid !== 'com.atproto.server.createSession') return null
      const { authFactorToken } = (await asked.json()) as { authFactorToken?: string }
      return authFactorToken === undefined
        ? Response.json({ error: 'AuthFactorTokenRequired', message: 'A code was mailed' }, { status: 401 })
        : null
    }
    const page = await freshPage()
    await signInAtOldServer(page, from, await inviteCode())
    await page.getByLabel('Sign-in code from the old server').fill('ABC12-DEF34')
    await page.getByLabel('Password at the old server').fill(from.password)
    await look(page, 'second-factor')
    await page.getByRole('button', { name: 'Show me the plan' }).click()
    await page.getByText('Comes along').waitFor()
    host.lie = () => null
    expect(await page.getByLabel('Email address').inputValue()).toBe(from.email)
  })
})

test('a person sees which keys go, keeps one that the old server claims, and signs nothing that was not shown', async () => {
  const own = deviceKey()
  const from = await createAccount(old, `mover${names++}`, { recoveryKey: own.did })
  const { rotationKeys } = (await lastOperation({ directory: plc, account: from })) as Operation
  host.lie = (nsid) =>
    nsid === 'com.atproto.identity.getRecommendedDidCredentials' ? Response.json({ rotationKeys }) : null
  const page = await freshPage()
  await signInAtOldServer(page, from, await inviteCode())
  await page.getByText('Keys that control your identity: 1 will stay, 2 will go').click()
  await look(page, 'plan-keys')
  await begin(page, from, 'vera-here.test')
  await pds.runSteps()
  await page.reload()
  const stale = await page.context().newPage()
  await stale.goto(page.url())
  const mine = page.getByRole('checkbox', { name: own.did })
  expect(await mine.isChecked()).toBe(false)
  await mine.check()
  await page.getByRole('button', { name: 'Save which keys stay' }).click()
  await page.waitForURL(/account\/move\?/)
  expect(await mine.isChecked()).toBe(true)
  await look(page, 'keys-kept')

  const code = await lastCode(old, from.email)
  await stale.getByLabel('Code from the email').fill(code)
  await stale.getByRole('button', { name: 'Change my identity' }).click()
  expect(await stale.getByRole('alert').innerText()).toContain('review its keys again')
  await look(stale, 'keys-shown-again')
  await page.getByLabel('Code from the email').fill(code)
  await page.getByRole('button', { name: 'Change my identity' }).click()
  await pds.runSteps()
  await page.reload()
  await page.getByText('Welcome').waitFor()
  expect(((await lastOperation({ directory: plc, account: from })) as Operation).rotationKeys[0]).toBe(own.did)
  host.lie = () => null
})

test('a person signs with a secret key of their own in place of the old server, and the key is not shown again', async () => {
  const secret = randomBytes(32)
  const secretKey = formatSecretMultikey('p256', secret)
  const recoveryKey = formatDidKey(signingKey('p256', secret).publicKey)
  const from = await createAccount(old, `mover${names++}`, { recoveryKey })
  const page = await freshPage()
  await begin(page, from, 'olga-here.test')
  await pds.runSteps()
  await page.reload()
  const sign = async (key: string) => {
    if (!(await page.getByLabel('Your secret key').isVisible()))
      await page.getByText('Sign with a key of my own').click()
    await page.getByLabel('Your secret key').fill(key)
    await page.getByRole('button', { name: 'Change my identity with my key' }).click()
  }
  await sign(recoveryKey)
  expect(await page.getByRole('alert').innerText()).toContain('begins with z')
  await sign(formatSecretMultikey('p256', randomBytes(32)))
  await page.getByRole('alert').waitFor()
  await look(page, 'wrong-key')
  await sign(secretKey)
  await page.waitForURL(/account\/move\?/)
  await pds.runSteps()
  await page.reload()
  await page.getByText('Welcome').waitFor()
  expect(((await lastOperation({ directory: plc, account: from })) as Operation).rotationKeys).toContain(recoveryKey)
  expect(JSON.stringify([pds.log, await pds.rows('move_in')])).not.toContain(secretKey)
})

test('a person whose session at the old server ends while they read the plan is told', async () => {
  const from = await someone()
  const page = await freshPage()
  await signInAtOldServer(page, from, await inviteCode())
  await page.getByLabel('New password for this server').fill(NEW)
  host.lie = () => Response.json({ error: 'ExpiredToken', message: 'Token has expired' }, { status: 400 })
  await page.getByRole('button', { name: 'Begin the move' }).click()
  expect(await page.getByRole('alert').innerText()).toContain('sign in there again')
  host.lie = () => null
})

test('a move that is closed is found again on the account page, and can be cancelled', async () => {
  const from = await someone()
  const first = await freshPage()
  await begin(first, from, 'rosa-here.test')
  await first.close()
  await pds.runSteps()
  const page = await freshPage()
  await page.goto(`${pds.url}/account/sign-in`)
  await page.getByLabel('Handle or email address').fill('rosa-here.test')
  await page.getByLabel('Password', { exact: true }).fill(NEW)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('link', { name: 'See how far it is' }).click()
  await page.getByText('Cancel the move').first().click()
  await look(page, 'cancel')
  await page.getByRole('button', { name: 'Cancel the move' }).click()
  await page.waitForURL(/move-here/)
  expect(await pds.count('account', { did: from.did })).toBe(0)
  expect((await from.call('com.atproto.server.checkAccountStatus')).body).toMatchObject({ activated: true })
})

test('the old server that fails is named, and the page loads again by itself while the server is at work', async () => {
  const from = await someone()
  host.lie = (nsid) => (nsid === 'com.atproto.sync.getRepo' ? new Response('away', { status: 502 }) : null)
  const page = await freshPage()
  await begin(page, from, 'otto-here.test')
  await pds.runSteps()
  const response = await page.reload()
  expect(response!.headers()['refresh']).toBe('5')
  await page.getByText('tries again by itself').waitFor()
  await look(page, 'old-server-away')
  host.lie = () => null
  expect(await page.getByText('In progress').count()).toBe(1)
})

/** A move whose old server is gone, up to the form for the backup. */
async function beginWithoutOldServer(page: Page, from: TestAccount, handle: string): Promise<void> {
  host.lie = (nsid) => (nsid.startsWith('com.atproto.sync.') ? new Response('away', { status: 502 }) : null)
  await begin(page, from, handle)
  await pds.runSteps()
  await page.reload()
  await page.getByText('The old server is gone').click()
  await page.getByRole('button', { name: 'Continue without it' }).click()
  await page.getByText('your posts come from your backup').waitFor()
}

async function uploadBackup(page: Page, name: string, buffer: Buffer): Promise<void> {
  await page.getByLabel('Your backup').setInputFiles({ name, mimeType: 'application/octet-stream', buffer })
  await page.getByRole('button', { name: 'Upload it' }).click()
}

test('a person whose old server is gone uploads the backup, after a file that is none', async () => {
  const from = await someone()
  const record = { $type: 'com.example.note', text: 'hello' }
  const { body: written } = await from.call('com.atproto.repo.createRecord', {
    json: { repo: from.did, collection: 'com.example.note', record },
  })
  const car = await (await fetch(`${old.url}/xrpc/com.atproto.sync.getRepo?did=${from.did}`)).arrayBuffer()
  const page = await freshPage()
  await beginWithoutOldServer(page, from, 'gone-here.test')
  await look(page, 'backup')
  await uploadBackup(page, 'notes.txt', Buffer.from('nothing of a repository'))
  await page.getByRole('alert').waitFor()
  await look(page, 'backup-refused')
  await uploadBackup(page, 'backup.car', Buffer.from(car))
  await page.waitForURL(/account\/move\?/)
  await pds.runSteps()
  await page.reload()
  await page.getByText('Your turn').waitFor()
  expect(await pds.count('record', { path: written.uri.split('/').slice(3).join('/') })).toBe(1)
  host.lie = () => null
})

test('a person whose old server is gone uploads the archive of it, with pictures, after that of another', async () => {
  const [from, other] = [await someone(), await someone()]
  const agent = new AtpAgent({ service: old.url })
  await agent.login({ identifier: from.did, password: from.password })
  await settleIn(agent)
  const archiveOf = async ({ accessJwt }: TestAccount) => {
    const exported = await fetch(`${old.url}/v1/account/archive`, { headers: bearer(accessJwt) })
    return Buffer.from(await exported.arrayBuffer())
  }
  const [archive, others] = [await archiveOf(from), await archiveOf(other)]
  const page = await freshPage()
  await beginWithoutOldServer(page, from, 'packed-here.test')
  await uploadBackup(page, 'other.zip', others)
  expect(await page.getByRole('alert').innerText()).toContain('the archive of another account')
  expect(await pds.count('blob', { did: from.did })).toBe(0)
  await uploadBackup(page, 'archive.zip', archive)
  await page.waitForURL(/account\/move\?/)
  await pds.runSteps()
  await page.reload()
  await page.getByText('Your turn').waitFor()
  await page.getByText('3 of 3', { exact: true }).waitFor()
  const { body } = await from.call('app.bsky.actor.getPreferences')
  const here = await logIn(pds, { ...from, handle: 'packed-here.test' }, NEW)
  expect(body.preferences).not.toEqual([])
  expect((await here.call('app.bsky.actor.getPreferences')).body).toEqual(body)
  host.lie = () => null
})

test('an account holder moves away: backup, code, and what is left behind', async () => {
  const from = await createAccount(pds, `away${names++}`, { inviteCode: await inviteCode() })
  const page = await freshPage()
  await signIn(page, pds, from)
  await page.getByRole('link', { name: 'Move to another server' }).click()
  await page.getByText('Nothing has changed yet').waitFor()
  await look(page, 'move-away')
  const download = page.waitForEvent('download')
  await page.getByRole('button', { name: 'Download your data' }).click()
  expect((await download).suggestedFilename()).toEndWith('.zip')
  await page.getByRole('button', { name: 'Mail me the code' }).click()
  await page.getByText('We have mailed you the code').waitFor()
  const code = await lastCode(pds, from.email)

  const { operation } = (
    await from.call('com.atproto.identity.signPlcOperation', {
      json: {
        token: code,
        services: { atproto_pds: { type: 'AtprotoPersonalDataServer', endpoint: 'https://new.example' } },
      },
    })
  ).body
  expect((await request(`${plc.url}/${from.did}`, { json: operation })).status).toBe(200)
  await page.goto(`${pds.url}/account/move-away?account=${from.did}`)
  await page.getByText('names new.example now').waitFor()
  await look(page, 'moved-away')
  await page.getByRole('button', { name: 'delete it after 30 days' }).click()
  await page.getByText('It will be deleted after').waitFor()
  await page.getByRole('button', { name: 'Keep it after all' }).click()
  await page.getByText('is deactivated.').waitFor()
  expect((await from.call('com.atproto.server.checkAccountStatus')).body).toMatchObject({ activated: false })
})

test('another site cannot act on a move', async () => {
  const { did } = await createAccount(pds, `local${names++}`, { inviteCode: await inviteCode() })
  const send = (path: string) =>
    request(`${pds.url}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded', 'sec-fetch-site': 'cross-site' },
      body: new URLSearchParams({ account: did, act: 'cancel' }).toString(),
    })
  for (const path of [
    '/account/move',
    '/account/move/archive',
    '/account/move-away',
    '/account/move-here',
    '/account/move-here/begin',
  ])
    expect({ path, status: (await send(path)).status }).toEqual({ path, status: 403 })
})

test('people who use a keyboard or a screen reader can use every page', async () => {
  const from = await someone()
  const page = await freshPage({ javaScriptEnabled: true })
  await page.goto(`${pds.url}/account/move-here`)
  expect(await axeFaults(page)).toEqual([])
  await signInAtOldServer(page, from, await inviteCode())
  await page.getByText('Comes along').waitFor()
  await page.evaluate('document.querySelectorAll("details").forEach((one) => { one.open = true })')
  expect(await axeFaults(page)).toEqual([])
  await begin(page, from, 'ida-here.test')
  await pds.runSteps()
  await page.reload()
  await page.evaluate('document.querySelectorAll("details").forEach((one) => { one.open = true })')
  await look(page, 'your-turn-open')
  expect(await axeFaults(page)).toEqual([])
  await page.goto(`${pds.url}/account/move-away`)
  expect(await axeFaults(page)).toEqual([])
})
