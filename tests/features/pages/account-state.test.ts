/**
 * What a person mends on the account page without any app: a domain as the handle, an address, an account that sleeps.
 */
import { describe, expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { parseOperation } from '../../../src/protocol/plc.ts'
import { createOutbound } from '../../../src/platform/network/outbound.ts'
import { createAccount } from '../../support/clients/account.ts'
import { request } from '../../support/clients/http.ts'
import { startPds } from '../../support/servers/pds.ts'
import { useWorld } from '../../support/world.ts'
import { signIn } from '../../support/clients/browser.ts'

const { pds, dns, web, freshPage } = useWorld({ web: [], browser: true, config: { rateLimit: { enabled: false } } })

const heading = (page: Page) => page.getByRole('heading', { level: 1 }).textContent()
const codeFor = (email: string) =>
  pds.mails
    .filter(({ to }) => to === email)
    .flatMap(({ text }) => text.match(/^[A-Z2-7]{5}-[A-Z2-7]{5}$/m) ?? [])
    .at(-1)!

describe('a domain of one’s own', () => {
  async function ask(page: Page, handle: string): Promise<void> {
    await page.getByText('Change handle', { exact: true }).first().click()
    await page.getByLabel('New handle').fill(handle)
    await page.getByRole('button', { name: 'Change handle' }).click()
  }
  const check = (page: Page) => page.getByRole('button', { name: 'Check and change my handle' }).click()
  const found = async (page: Page) => (await page.getByRole('status').innerText()).replaceAll(/\s+/g, ' ')

  test('is told which record to publish; each check looks it up again, says what it found, and then changes the handle', async () => {
    const ann = await createAccount(pds, 'ann')
    const page = await freshPage()
    await signIn(page, pds, ann)
    await ask(page, '@Ann.Web.test-domain.com')
    expect(await heading(page)).toBe('Use @ann.web.test-domain.com')
    const shown = await page.locator('.copy').allInnerTexts()
    expect(shown).toEqual([
      '_atproto.ann.web.test-domain.com',
      `did=${ann.did}`,
      'https://ann.web.test-domain.com/.well-known/atproto-did',
      ann.did,
    ])
    await check(page)
    expect(await found(page)).toMatch(/DNS record: not found.*File: not found/)
    expect((await ann.call('com.atproto.server.getSession')).body.handle).toBe('ann.test')

    const other = await createAccount(pds, 'another')
    dns.setHandle('ann.web.test-domain.com', other.did)
    await check(page)
    expect(await found(page)).toContain(`names another account, ${other.did}`)

    dns.setHandle('ann.web.test-domain.com', ann.did)
    await check(page)
    expect(await found(page)).toContain('Your handle is changed')
    expect(await heading(page)).toBe('@ann.web.test-domain.com')
    expect((await ann.call('com.atproto.server.getSession')).body.handle).toBe('ann.web.test-domain.com')
  })

  test('can be shown by a file as well', async () => {
    const outbound = createOutbound({
      resolver: dns,
      reach: 'loopback',
      httpsPort: web.port,
      certificateAuthorities: web.authority,
    })
    await using other = await startPds({ availableUserDomains: ['people.test'] }, { outbound, resolver: dns })
    const bob = await createAccount(other, 'bob', { handle: 'bob.people.test' })
    dns.setAddresses('bob.web.test', '127.0.0.1')
    const page = await freshPage()
    await page.goto(`${other.url}/account/sign-in`)
    await page.getByLabel('Handle or email address').fill(bob.handle)
    await page.getByLabel('Password', { exact: true }).fill(bob.password)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await ask(page, 'bob.web.test')
    await check(page)
    expect(await found(page)).toContain('File: not found')
    web.publishHandle('bob.web.test', bob.did)
    await check(page)
    expect(await heading(page)).toBe('@bob.web.test')
  })

  test('is told when a record that counts says otherwise', async () => {
    const bea = await createAccount(pds, 'bea')
    const page = await freshPage()
    await signIn(page, pds, bea)
    const elsewhere = 'bea-elsewhere.com'
    await ask(page, elsewhere)
    dns.setTexts(`_atproto.${elsewhere}`, 'did=did:plc:aaaaaaaaaaaaaaaaaaaaaaaa')
    await check(page)
    expect(await found(page)).toContain('DNS record: found, but it names another account')
    dns.setTexts(`_atproto.${elsewhere}`)
    await check(page)
    expect(await found(page)).toContain('DNS record: not found')
  })

  test('that points to the account already is taken at once', async () => {
    const cai = await createAccount(pds, 'cai')
    const page = await freshPage()
    await signIn(page, pds, cai)
    dns.setHandle('cai.com', cai.did)
    await ask(page, 'cai.com')
    expect(await heading(page)).toBe('@cai.com')
  })

  test('is shown to nobody who is not signed in, and a name that is none leads back', async () => {
    const page = await freshPage()
    await page.goto(`${pds.url}/account/handle/domain?handle=example.com`)
    expect(new URL(page.url()).pathname).toBe('/account/sign-in')
    const dee = await createAccount(pds, 'dee')
    await signIn(page, pds, dee)
    await page.goto(`${pds.url}/account/handle/domain?handle=%3Cb%3E`)
    expect(new URL(page.url()).pathname).toBe('/account')
  })

  test('a name of ours needs no domain to be typed', async () => {
    const eli = await createAccount(pds, 'eli')
    const page = await freshPage()
    await signIn(page, pds, eli)
    await ask(page, 'eli-the-second')
    expect(await heading(page)).toBe('@eli-the-second.test')
  })
})

describe('an address that is not confirmed', () => {
  test('is confirmed with a code from the mail', async () => {
    const fin = await createAccount(pds, 'fin')
    const page = await freshPage()
    await signIn(page, pds, fin)
    await page.getByRole('link', { name: 'Confirm it' }).click()
    await page.getByRole('button', { name: 'Send a code' }).click()
    expect(await page.getByRole('status').textContent()).toContain('sent a code')
    await page.getByLabel('Code from the email').fill('AAAAA-AAAAA')
    await page.getByRole('button', { name: 'Confirm email address' }).click()
    expect(await page.getByRole('alert').textContent()).toContain('wrong')
    expect(await page.getByLabel('Code from the email').inputValue()).toBe('AAAAA-AAAAA')
    const tab = await page.context().newPage()
    await tab.goto(`${pds.url}/account#confirm-email`)
    await tab.getByLabel('Code from the email').waitFor({ state: 'visible' })
    await page.getByLabel('Code from the email').fill(` ${codeFor(fin.email).toLowerCase()} `)
    await page.getByRole('button', { name: 'Confirm email address' }).click()
    expect(await page.getByRole('status').textContent()).toContain('is confirmed')
    expect((await fin.call('com.atproto.server.getSession')).body.emailConfirmed).toBe(true)
    expect(await page.getByText('not confirmed').count()).toBe(0)
    await tab.getByLabel('Code from the email').fill('AAAAA-AAAAA')
    await tab.getByRole('button', { name: 'Confirm email address' }).click()
    expect(await tab.getByRole('alert').textContent()).toContain('wrong')
  })

  test('that was changed after the page was shown is not confirmed by it', async () => {
    const gus = await createAccount(pds, 'gus')
    const page = await freshPage()
    await signIn(page, pds, gus)
    await page.getByRole('link', { name: 'Confirm it' }).click()
    await page.getByRole('button', { name: 'Send a code' }).click()
    await page.getByLabel('Code from the email').fill(codeFor(gus.email))
    expect(
      await gus.call('com.atproto.server.updateEmail', { json: { email: 'gus@elsewhere.example' } }),
    ).toMatchObject({ status: 200 })
    await page.getByRole('button', { name: 'Confirm email address' }).click()
    expect(await page.getByRole('alert').isVisible()).toBe(true)
    expect((await gus.call('com.atproto.server.getSession')).body.emailConfirmed).toBe(false)
  })
})

describe('an account that was deactivated', () => {
  test('is woken on the page', async () => {
    const hal = await createAccount(pds, 'hal')
    const deleteAfter = new Date(pds.clock.now() + 10 * 86_400_000).toISOString()
    await hal.call('com.atproto.server.deactivateAccount', { json: { deleteAfter } })
    const page = await freshPage()
    await signIn(page, pds, hal)
    expect(await page.getByText('This account is deactivated').textContent()).toContain('will be deleted after')
    await page.getByRole('button', { name: 'Reactivate account' }).click()
    expect(await page.getByRole('status').textContent()).toContain('active again')
    expect(await page.getByText('This account is deactivated').count()).toBe(0)
    expect(await hal.call('com.atproto.server.checkAccountStatus')).toMatchObject({
      status: 200,
      body: { activated: true },
    })
  })

  test.each([
    [
      'names another server',
      { services: { atproto_pds: { type: 'AtprotoPersonalDataServer', endpoint: 'https://elsewhere.example' } } },
      'names another server. If you have moved there, sign in there.',
    ],
    [
      'names another key',
      { verificationMethods: { atproto: 'did:key:zQ3shokFTS3brHcDQrn82RUDfCZESWL1ZdCEJwekUDPQiYBme' } },
      'names a signing key that this server does not hold',
    ],
    [
      'is in other hands',
      { rotationKeys: ['did:key:zQ3shokFTS3brHcDQrn82RUDfCZESWL1ZdCEJwekUDPQiYBme'] },
      'not under the control of this server',
    ],
  ])('whose identity %s is told so on the page, and stays as it is', async (what, changes, words) => {
    const jan = await createAccount(pds, what.replaceAll(' ', '-'))
    await jan.call('com.atproto.identity.requestPlcOperationSignature', { method: 'POST' })
    const { body } = await jan.call('com.atproto.identity.signPlcOperation', {
      json: { token: codeFor(jan.email), ...changes },
    })
    await pds.ctx.plc.submit(jan.did as Did, parseOperation(body.operation)!)
    await jan.call('com.atproto.server.deactivateAccount', { json: {} })
    const page = await freshPage()
    await signIn(page, pds, jan)
    await page.getByRole('button', { name: 'Reactivate account' }).click()
    expect(await page.getByRole('alert').textContent()).toContain(words)
    expect(await page.getByRole('button', { name: 'Reactivate account' }).count()).toBe(1)
    expect((await jan.call('com.atproto.server.checkAccountStatus')).body.activated).toBe(false)
  })

  test('wakes for its holder alone', async () => {
    const ivo = await createAccount(pds, 'ivo')
    await ivo.call('com.atproto.server.deactivateAccount', { json: {} })
    const page = await freshPage()
    await signIn(page, pds, ivo)
    const form_token = await page.locator('[name=form_token]').first().inputValue()
    const [cookie] = await page.context().cookies(pds.url)
    const agent = await page.evaluate(() => navigator.userAgent)
    const send = (fields: Record<string, string>) =>
      request(`${pds.url}/account/reactivate`, {
        method: 'POST',
        headers: {
          cookie: `${cookie!.name}=${cookie!.value}`,
          'user-agent': agent,
          'content-type': 'application/x-www-form-urlencoded',
        },
        body: new URLSearchParams({ account: ivo.did, ...fields }).toString(),
      })
    expect(await send({})).toMatchObject({ status: 403 })
    expect((await ivo.call('com.atproto.server.checkAccountStatus')).body.activated).toBe(false)
    expect(await send({ form_token })).toMatchObject({ status: 303 })
    expect((await ivo.call('com.atproto.server.checkAccountStatus')).body.activated).toBe(true)
  })
})
