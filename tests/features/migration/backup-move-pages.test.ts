/** Moving an account here in a browser, without scripts, when its old server is gone: by a backup and a key. */
import { randomBytes } from 'node:crypto'
import { beforeAll, expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { signOperation, type Operation, type UnsignedOperation } from '../../../src/protocol/plc.ts'
import { formatDidKey, signingKey, type SigningKey } from '../../../src/protocol/keys.ts'
import { formatSecretMultikey } from '../../../src/protocol/secret-multikey.ts'
import { axeFaults } from '../../support/clients/accessibility.ts'
import { createAccount, logIn, PASSWORD, xrpc, type TestAccount } from '../../support/clients/account.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { lastOperation } from '../../support/clients/rotating.ts'
import { stranger } from '../../support/clients/stranger.ts'
import { CookieBrowser } from '../../support/clients/wallet-sign-in.ts'
import { deviceKey } from '../../support/clients/wallet.ts'
import { ADMIN_TOKEN, startPds } from '../../support/servers/pds.ts'
import { useWorld } from '../../support/world.ts'

const { pds, plc, freshPage } = useWorld({ plc: true, browser: true, config: { rateLimit: { enabled: false } } })

interface Orphan extends TestAccount {
  key: SigningKey
  publicKey: string
  secretKey: string
  /** The CAR file of the repository, and the archive of the account. */
  car: Buffer
  zip: Buffer
}

const names = ['vera', 'otto', 'rosa', 'nils', 'ines'] as const
const orphans = {} as Record<(typeof names)[number], Orphan>

beforeAll(async () => {
  const config = { plcDirectoryUrl: plc.url, rateLimit: { enabled: false } }
  await using old = await startPds(config)
  for (const name of names) orphans[name] = await makeOrphan(old, name)
})

/** An account with a record and a key of its own, and what its holder has kept of it. */
async function makeOrphan(old: { url: string }, name: string): Promise<Orphan> {
  const secret = randomBytes(32)
  const key = signingKey('p256', secret)
  const publicKey = formatDidKey(key.publicKey)
  const account = await createAccount(old, name, { recoveryKey: publicKey })
  const record = { $type: 'com.example.note', text: name }
  const json = { repo: account.did, collection: 'com.example.note', rkey: name, record }
  await account.call('com.atproto.repo.createRecord', { json })
  const car = await fetch(`${old.url}/xrpc/com.atproto.sync.getRepo?did=${account.did}`)
  const zip = await fetch(`${old.url}/v1/account/archive`, { headers: bearer(account.accessJwt) })
  const secretKey = formatSecretMultikey('p256', secret)
  return {
    ...account,
    key,
    publicKey,
    secretKey,
    car: Buffer.from(await car.bytes()),
    zip: Buffer.from(await zip.bytes()),
  }
}

async function name(page: Page, { did, publicKey }: Orphan, handle: string): Promise<void> {
  await page.goto(`${pds.url}/account/move-here`)
  await page.getByRole('link', { name: 'My old server is gone' }).click()
  await page.getByLabel('DID of your account').fill(did)
  await page.getByLabel('Handle here').fill(handle)
  await page.getByLabel('Your public key').fill(publicKey)
  await page.getByRole('button', { name: 'Show me what changes' }).click()
}

async function enterAccount(page: Page, { email }: Orphan): Promise<void> {
  await page.getByLabel('Email address').fill(email)
  await page.getByLabel('New password').fill(PASSWORD)
}

const signHere = async (page: Page, secretKey: string) => {
  await page.getByLabel('Your secret key').fill(secretKey)
  await page.getByRole('button', { name: 'Begin the move' }).click()
}

async function upload(page: Page, file: string, buffer: Buffer): Promise<void> {
  await page.waitForURL(/account\/move\?/)
  await page.getByLabel('Your backup').setInputFiles({ name: file, mimeType: 'application/octet-stream', buffer })
  await page.getByRole('button', { name: 'Upload it' }).click()
  await page.waitForURL(/account\/move\?/)
  await pds.runSteps()
  await page.reload()
  await page.getByText('Welcome').waitFor()
}

const identityOf = async (account: TestAccount) => (await lastOperation({ directory: plc, account })) as Operation

async function expectHere(orphan: Orphan, word: string): Promise<void> {
  const { rotationKeys, services } = await identityOf(orphan)
  expect(rotationKeys[0]).toBe(orphan.publicKey)
  expect(services['atproto_pds']?.endpoint).toBe(pds.ctx.config.publicUrl)
  const params = new URLSearchParams({ repo: orphan.did, collection: 'com.example.note', rkey: word })
  const { body } = await request(`${pds.url}/xrpc/com.atproto.repo.getRecord?${params}`)
  expect(body).toMatchObject({ value: { text: word } })
}

const shownOperation = async (page: Page) =>
  JSON.parse((await page.locator('details .copy').textContent())!) as UnsignedOperation

test('a person signs with a secret key, uploads the CAR file, and is here; the key is neither stored nor logged', async () => {
  const { vera } = orphans
  const page = await freshPage()
  await name(page, vera, 'vera-here.test')
  await page.getByText('Keys that stay').waitFor()
  expect(await page.locator('.card').first().innerText()).toContain(vera.publicKey)
  await enterAccount(page, vera)
  await signHere(page, vera.secretKey)
  const kept = async () => JSON.stringify([pds.log, await pds.rows('move_in'), await pds.rows('step')])
  expect(await kept()).not.toContain(vera.secretKey)
  await upload(page, 'vera.car', vera.car)
  await expectHere(vera, 'vera')
  expect(await kept()).not.toContain(vera.secretKey)
})

test('a person whose key stays elsewhere signs the operation that is shown, and uploads the archive', async () => {
  const { otto } = orphans
  const page = await freshPage()
  await name(page, otto, 'otto-here.test')
  await enterAccount(page, otto)
  await page.getByText('Sign it elsewhere').click()
  const operation = await shownOperation(page)
  await page.getByLabel('The signed operation, as JSON').fill(JSON.stringify(signOperation(operation, deviceKey().key)))
  await page.getByRole('button', { name: 'Begin the move' }).click()
  expect(await page.getByRole('alert').innerText()).toContain('one of the rotation keys of your identity')
  expect(await page.getByLabel('The signed operation, as JSON').getAttribute('aria-invalid')).toBe('true')
  await page.getByLabel('New password').fill(PASSWORD)
  await page.getByLabel('The signed operation, as JSON').fill(JSON.stringify(signOperation(operation, otto.key)))
  await page.getByRole('button', { name: 'Begin the move' }).click()
  await upload(page, 'otto.zip', otto.zip)
  await expectHere(otto, 'otto')
})

test('an account that was deleted here comes back with its archive, a key of its holder and its handle', async () => {
  const wanda = await makeOrphan(pds, 'wanda')
  const page = await freshPage()
  await name(page, wanda, wanda.handle)
  expect(await page.getByRole('alert').innerText()).toContain('Your account is here already')
  // No field is at fault, so a screen reader announces it only if it is focused.
  expect(await page.evaluate('document.activeElement.id')).toBe('fault')
  const json = { did: wanda.did }
  expect((await xrpc(pds, 'com.atproto.admin.deleteAccount', { json, headers: bearer(ADMIN_TOKEN) })).status).toBe(200)
  await name(page, wanda, wanda.handle)
  await enterAccount(page, wanda)
  await signHere(page, wanda.secretKey)
  await upload(page, 'wanda.zip', wanda.zip)
  await expectHere(wanda, 'wanda')
  expect((await logIn(pds, wanda, PASSWORD)).did).toBe(wanda.did)
})

test('a person keeps a key by a tick, and what is signed is what was shown then', async () => {
  const { rosa } = orphans
  const other = deviceKey()
  const named = await identityOf(rosa)
  const { sig: _, ...before } = named
  const rotationKeys = [rosa.publicKey, other.did, ...before.rotationKeys.slice(1)]
  const prev = (await request(`${plc.url}/${rosa.did}/log/audit`)).body.at(-1).cid as string
  const change = signOperation({ ...before, rotationKeys, prev }, rosa.key)
  expect((await request(`${plc.url}/${rosa.did}`, { json: change })).status).toBe(200)
  const page = await freshPage()
  await name(page, rosa, 'rosa-here.test')
  const mine = page.getByRole('checkbox', { name: other.did })
  expect(await mine.isChecked()).toBe(false)
  await mine.check()
  await page.getByRole('button', { name: 'Save which keys stay' }).click()
  expect(await page.getByRole('checkbox', { name: other.did }).isChecked()).toBe(true)
  await enterAccount(page, rosa)
  await signHere(page, rosa.secretKey)
  await upload(page, 'rosa.car', rosa.car)
  expect((await identityOf(rosa)).rotationKeys.slice(0, 2)).toEqual([rosa.publicKey, other.did])
})

test('an identity that has changed since it was shown is not signed, but shown again', async () => {
  const { nils } = orphans
  const page = await freshPage()
  await name(page, nils, 'nils-here.test')
  await enterAccount(page, nils)
  const { sig: _, ...before } = await identityOf(nils)
  const prev = (await request(`${plc.url}/${nils.did}/log/audit`)).body.at(-1).cid as string
  const change = signOperation({ ...before, alsoKnownAs: ['at://nils.example'], prev }, nils.key)
  expect((await request(`${plc.url}/${nils.did}`, { json: change })).status).toBe(200)
  await signHere(page, nils.secretKey)
  expect(await page.getByRole('alert').innerText()).toContain('review its keys again')
  expect(await page.content()).not.toContain(nils.secretKey)
  expect(await pds.count('account', { did: nils.did })).toBe(0)
  await page.getByLabel('New password').fill(PASSWORD)
  await signHere(page, nils.secretKey)
  await upload(page, 'nils.car', nils.car)
  await expectHere(nils, 'nils')
})

test('a person sees at the field what is wrong, and loses nothing else', async () => {
  const { ines } = orphans
  await createAccount(pds, 'taken')
  const page = await freshPage()
  const fault = async (label: string) => {
    expect(await page.getByLabel(label).getAttribute('aria-invalid')).toBe('true')
    return page.getByRole('alert').innerText()
  }
  await name(page, { ...ines, did: `did:plc:${'a'.repeat(24)}` }, 'ines-here.test')
  await page.getByRole('alert').waitFor()
  await name(page, { ...ines, did: 'nonsense' }, 'ines-here.test')
  expect(await fault('DID of your account')).toContain('no account')
  await name(page, { ...ines, publicKey: deviceKey().did }, 'ines-here.test')
  expect(await fault('Your public key')).toContain('does not name this key')
  await name(page, { ...ines, publicKey: ines.secretKey }, 'ines-here.test')
  expect(await fault('Your public key')).toContain('did:key:z')
  await name(page, ines, 'taken.test')
  await enterAccount(page, ines)
  await signHere(page, ines.secretKey)
  expect(await fault('Handle here')).toContain('taken')
  await page.getByLabel('Handle here').fill('ines-here.test')
  await page.getByRole('button', { name: 'Show me what changes' }).click()
  await enterAccount(page, ines)
  await signHere(page, ines.publicKey)
  expect(await fault('Your secret key')).toContain('begins with z')
  expect(await page.getByLabel('Email address').inputValue()).toBe(ines.email)
  expect(await page.getByLabel('Your secret key').inputValue()).toBe('')
  await page.getByLabel('New password').fill(PASSWORD)
  await page.getByRole('button', { name: 'Begin the move' }).click()
  expect(await page.getByRole('alert').innerText()).toContain('Please enter the secret key')
  expect(await pds.count('account', { did: ines.did })).toBe(0)
})

test('both pages fit small and large screens, can be read by all, and are in the language of the browser', async () => {
  const { ines } = orphans
  for (const locale of ['en', 'de'] as const) {
    const page = await freshPage({ javaScriptEnabled: true, locale })
    const look = async (title: string) => {
      expect(await page.getByRole('heading', { level: 1 }).innerText()).toBe(title)
      await page.evaluate('document.querySelectorAll("details").forEach((one) => { one.open = true })')
      for (const width of [320, 360, 768, 1280]) {
        await page.setViewportSize({ width, height: 800 })
        const overflow = await page.evaluate('document.scrollingElement.scrollWidth - innerWidth')
        expect({ title, width, overflow }).toEqual({ title, width, overflow: 0 })
      }
      expect(await axeFaults(page)).toEqual([])
    }
    await page.goto(`${pds.url}/account/move-here/backup`)
    const titles = {
      en: ['Move here without your old server', 'What becomes of your identity'],
      de: ['Ohne den alten Server hierher umziehen', 'Was aus deiner Identität wird'],
    }[locale]
    await look(titles[0]!)
    await page.locator('[name=identifier]').fill(ines.did)
    await page.locator('[name=handle]').fill('ines-here.test')
    await page.locator('[name=wallet_key]').fill(ines.publicKey)
    await page.locator('button.primary').click()
    await page.locator('[name=secret_key]').waitFor()
    await look(titles[1]!)
  }
})

test('another site sends neither form', async () => {
  const { did, publicKey, secretKey } = orphans.ines
  const body = new URLSearchParams({ identifier: did, handle: 'x.test', wallet_key: publicKey, secret_key: secretKey })
  for (const path of ['/account/move-here/backup', '/account/move-here/backup/begin']) {
    const headers = { 'content-type': 'application/x-www-form-urlencoded', 'sec-fetch-site': 'cross-site' }
    const { status } = await request(`${pds.url}${path}`, { method: 'POST', headers, body: body.toString() })
    expect({ path, status }).toEqual({ path, status: 403 })
  }
})

test('a form that is refused because there were too many reserves no key', async () => {
  const limits = { createAccountPer5min: 1 }
  await using limited = await startPds({ plcDirectoryUrl: plc.url, rateLimit: limits }, { alone: 'it counts requests' })
  const send = async () => {
    const { did, didKey } = await stranger(limited, 'p256')
    const fields = { identifier: did, handle: 'begun.test', wallet_key: didKey, email: 'begun@example.com' }
    const { body } = await new CookieBrowser(limited).send('/account/move-here/backup/begin', fields)
    return { body, keys: await limited.count('reserved_signing_key', { did }) }
  }
  expect((await send()).keys).toBe(1)
  const refused = await send()
  expect(refused.body).toContain('Too many')
  expect(refused.keys).toBe(0)
})
