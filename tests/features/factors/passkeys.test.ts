/** Passkeys: each ceremony with an honest device, and with everything that a hostile one could send. */
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { SettingsService } from '@simplewebauthn/server'
import { beforeEach, describe, expect, test } from 'bun:test'
import { createAccount, PASSWORD, xrpc } from '../../support/clients/account.ts'
import { appOn, codesOn, FactorHolder, passkeyOptionsOn } from '../../support/clients/factor-holder.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { hiddenFields, OAuthClient } from '../../support/clients/oauth-client.ts'
import { cbor, PasskeyDevice, type Cbor, type Tampering } from '../../support/clients/passkey-device.ts'
import { ConsoleBrowser } from '../../support/clients/console-browser.ts'
import { giveRole } from '../../support/clients/role-holder.ts'
import { CookieBrowser } from '../../support/clients/wallet-sign-in.ts'
import { certificateWithList } from '../../support/self-signed.ts'
import { ADMIN_TOKEN } from '../../support/servers/config.ts'
import { lastCode, noticesTo } from '../../support/servers/mail.ts'
import { startPds } from '../../support/servers/pds.ts'
import { useWorld } from '../../support/world.ts'

let alice: FactorHolder
let device: PasskeyDevice
let names = 0
const { pds } = useWorld({ config: { rateLimit: { enabled: false } } })
const newHolder = async (): Promise<FactorHolder> => {
  const holder = new FactorHolder(pds, await createAccount(pds, `key${++names}`))
  await holder.signIn()
  return holder
}
beforeEach(async () => {
  alice = await newHolder()
  device = await alice.addPasskey()
})

const login = (json: object = {}) =>
  xrpc(pds, 'com.atproto.server.createSession', {
    json: { identifier: alice.account.did, password: PASSWORD, ...json },
  })
const entered = { status: 303 }
const subjects = async () => (await noticesTo(pds, alice.account.email)).map(({ subject }) => subject)
const stored = () => pds.rows('passkey', { did: alice.account.did })
/** Enters the password in a browser that is asked for the factor next. */
async function enterPassword(browser = new CookieBrowser(pds)) {
  const { body } = await browser.send('/account/sign-in', { identifier: alice.account.did, password: PASSWORD })
  return { browser, fields: hiddenFields(body), options: passkeyOptionsOn(body)!, body: String(body) }
}

describe('a passkey', () => {
  test('opens its account without a password, and passes as the second factor', async () => {
    const browser = new CookieBrowser(pds)
    expect((await alice.enterWith(device, browser)).headers.get('location')).toBe('/account')
    expect(await browser.signedIn()).toBe(alice.account.did)
    expect(
      (await pds.rows('oauth_device_account', { did: alice.account.did })).map((row) => row.passed_factor),
    ).toContain('held')
    const beside = await enterPassword()
    expect(beside.body).toContain('Use your passkey, or enter one of your recovery codes')
    expect(beside.options.allowCredentials).toHaveLength(1)
    const sent = await beside.browser.send('/account/sign-in', {
      ...beside.fields,
      passkey: device.get(beside.options),
    })
    expect(sent).toMatchObject(entered)
    expect(await beside.browser.signedIn()).toBe(alice.account.did)
  })

  test('is listed with its first and last use, has a name, and the holder is mailed about it', async () => {
    const page = async () => String((await alice.browser.open(alice.path)).body)
    expect(await page()).toContain('never used')
    await alice.enterWith(device, new CookieBrowser(pds))
    const body = await page()
    expect(body).toContain('last used')
    const id = (await stored())[0]!.credential_id
    const { form_token = '' } = hiddenFields(body)
    const rename = (name: string) =>
      alice.browser.send(alice.path, { account: alice.account.did, form_token, change: 'rename-passkey', id, name })
    expect(await rename('<b>Blue key</b>\u202e')).toMatchObject(entered)
    expect(await page()).toContain('<strong>&lt;b&gt;Blue key&lt;/b&gt;</strong>')
    expect((await rename(' ')).body).toContain('Please enter a name')
    expect(await subjects()).toEqual([expect.stringContaining('A passkey was added')])
  })

  test('of any algorithm that was asked for works', async () => {
    for (const type of ['ed25519', 'rsa'] as const) {
      const holder = await newHolder()
      const { fields, options } = await holder.openNewPasskey()
      const other = new PasskeyDevice(pds.url, false)
      await holder.browser.send(holder.path, { ...fields, passkey: other.create(options, {}, type) })
      const browser = new CookieBrowser(pds)
      expect(await holder.enterWith(other, browser)).toMatchObject(entered)
      expect(await browser.signedIn()).toBe(holder.account.did)
    }
  })

  test('is removed with the password and a factor, and then opens nothing', async () => {
    const id = (await stored())[0]!.credential_id
    const asked = await alice.change('remove-passkey', alice.browser, { id })
    expect(asked.body).toContain('One more step')
    expect(await stored()).toHaveLength(1)
    const pending = await enterPassword()
    const fields = { ...hiddenFields(asked.body), passkey: device.get(passkeyOptionsOn(asked.body)!) }
    expect((await alice.browser.send(alice.path, fields)).headers.get('location')).toContain('done=passkey-removed')
    const late = { ...pending.fields, passkey: device.get(pending.options) }
    expect((await pending.browser.send('/account/sign-in', late)).status).toBe(200)
    expect(await login()).toMatchObject({ status: 200 })
    expect(await pds.count('factor_recovery_code', { did: alice.account.did })).toBe(0)
    expect(await subjects()).toContainEqual(expect.stringContaining('A passkey was removed'))
  })

  test('of a removed account is gone', async () => {
    await request(`${pds.url}/xrpc/com.atproto.admin.deleteAccount`, {
      json: { did: alice.account.did },
      headers: bearer(ADMIN_TOKEN),
    })
    expect(await stored()).toEqual([])
  })
})

describe('losing it', () => {
  test('a recovery code opens the account, and the mail does not', async () => {
    expect(await login()).toMatchObject({ status: 401, body: { error: 'AuthFactorTokenRequired' } })
    await xrpc(pds, 'com.atproto.server.requestPasswordReset', { json: { email: alice.account.email } })
    const json = { token: await lastCode(pds, alice.account.email), password: 'the new password' }
    await xrpc(pds, 'com.atproto.server.resetPassword', { json })
    const { password } = json
    expect(await login({ password })).toMatchObject({ body: { error: 'AuthFactorTokenRequired' } })
    expect(await login({ password, authFactorToken: json.token })).toMatchObject({ status: 400 })
    expect(await stored()).toHaveLength(1)
    expect(await login({ password, authFactorToken: alice.recoveryCodes[0] })).toMatchObject({ status: 200 })
    expect(await login({ password, authFactorToken: alice.recoveryCodes[0] })).toMatchObject({ status: 400 })
  })

  test('the operator removes lost passkeys with the other factors', async () => {
    const reset = () =>
      request(`${pds.url}/v1/admin/accounts/${alice.account.did}/reset-factors`, {
        json: {},
        headers: bearer(ADMIN_TOKEN),
      })
    expect(await reset()).toMatchObject({ body: { hadFactors: true } })
    expect(await stored()).toEqual([])
    expect(await reset()).toMatchObject({ body: { hadFactors: false } })
  })

  test('an app beside it keeps the recovery codes, whichever goes first', async () => {
    const codes = alice.recoveryCodes
    const asked = await alice.changeWith('add-app', codes[0]!)
    alice.app = appOn(asked.body)
    const made = await alice.browser.send(alice.path, { ...hiddenFields(asked.body), code: alice.code() })
    expect(made.headers.get('location')).toContain('done=app-added')
    expect((await enterPassword()).body).toContain('Use your passkey, or enter the code that your authenticator app')
    await alice.changeWith('remove-app', alice.nextCode())
    expect(await login()).toMatchObject({ body: { error: 'AuthFactorTokenRequired' } })
    expect(await login({ authFactorToken: codes[1] })).toMatchObject({ status: 200 })
  })
})

test('a passkey is enough where the server demands a factor of everyone, and of operators', async () => {
  const rules = { accounts: { requireSecondFactor: true }, console: { requiresFactor: true } }
  await using strict = await startPds({ rateLimit: { enabled: false }, ...rules })
  const bob = await createAccount(strict, 'bob')
  const holder = new FactorHolder(strict, bob)
  const { body } = await holder.browser.send('/account/sign-in', { identifier: bob.handle, password: bob.password })
  const factor_code = await lastCode(strict, bob.email)
  await holder.browser.send('/account/sign-in', { ...hiddenFields(body), factor_code })
  const key = await holder.addPasskey(undefined, { code: () => lastCode(strict, bob.email, 2) })
  const mailed = strict.mails.length
  expect(await holder.enterWith(key, new CookieBrowser(strict))).toMatchObject(entered)
  await giveRole(strict, bob.did, 'moderator')
  const browser = new ConsoleBrowser(strict)
  const page = await browser.open('/admin/sign-in')
  const passkey = key.get(passkeyOptionsOn(page.body)!)
  expect(await browser.send('/admin/sign-in', { passkey })).toMatchObject(entered)
  expect(strict.mails.slice(mailed).filter(({ subject }) => subject.startsWith('Sign-in code'))).toEqual([])
})

test('a passkey of a former name of the server is not asked for, and its account is as closed as before', async () => {
  await pds.damage('passkey', { did: alice.account.did }, { rp_id: 'old.example' })
  const { body, browser, fields } = await enterPassword()
  expect(body).toContain('One more step')
  expect(passkeyOptionsOn(body)).toBeNull()
  expect(await login()).toMatchObject({ body: { error: 'AuthFactorTokenRequired' } })
  const sent = await browser.send('/account/sign-in', { ...fields, factor_code: alice.recoveryCodes[0]! })
  expect(sent).toMatchObject(entered)
  expect((await browser.open(alice.path)).body).toContain('made for a former address of this server')
})

test('a passkey that is refused is a line in the log, with the account if it has such a passkey', async () => {
  const before = pds.log.length
  const { privateKey: signer } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  await alice.enterWith(device, new CookieBrowser(pds), { signer })
  await alice.enterWith(device, new CookieBrowser(pds), { id: randomBytes(32) })
  const lines = pds.log.slice(before).filter(({ message }) => message === 'sign-in failed')
  expect(lines).toMatchObject([{ reason: 'passkey refused', did: alice.account.did }, { reason: 'passkey refused' }])
  expect(lines[1]).not.toHaveProperty('did')
})

// Hostile answers

/** What no browser says that shows a page of this server to a person who has been verified. */
const lies: Record<string, Tampering> = {
  'another origin': { origin: 'https://evil.example' },
  'the origin on another port': { origin: 'http://localhost:1' },
  'the host of a handle': { origin: 'http://alice.test' },
  'a frame in another site': { crossOrigin: true },
  'a frame in another site that is named': { crossOrigin: true, topOrigin: 'https://evil.example' },
  'another host': { rpId: 'evil.example' },
  'a device that was not touched': { isPresent: false },
  'a person who was not verified': { isVerified: false },
  'a challenge of its own': { challenge: randomBytes(54).toString('base64url') },
  'an empty challenge': { challenge: '' },
  'bytes that follow': { rest: Buffer.alloc(3) },
}

const malformed: [string, string][] = [
  ['a brace', '{'],
  ['null', 'null'],
  ['a list', '[]'],
  ['a text', '"x"'],
  ['an id alone', '{"id":"a"}'],
  ['a long text', 'x'.repeat(20_000)],
]

describe('making one', () => {
  test.each(
    Object.entries({
      ...lies,
      'the other ceremony': { type: 'webauthn.get' },
      'an attestation of the device': {
        format: 'packed',
        statement: new Map<Cbor, Cbor>([
          ['alg', -7],
          ['sig', randomBytes(70)],
        ]),
      },
      'an attestation of a key that signs for itself': { format: 'fido-u2f' },
      'an unknown attestation': { format: 'new' },
      'a statement of no attestation': { statement: new Map([['x', 1]] as const) },
      'an algorithm that was not asked for': { algorithm: -37 },
      'no key': { key: cbor(new Map()) },
      'a long id': { id: randomBytes(1500) },
      'nested lists without end': { key: Buffer.alloc(2000, 0x81) },
    } satisfies Record<string, Tampering>),
  )('%s is refused', async (_, tampering) => {
    const { fields, options } = await alice.openNewPasskey(alice.recoveryCodes.pop())
    const passkey = new PasskeyDevice(pds.url).create(options, tampering)
    expect((await alice.browser.send(alice.path, { ...fields, name: 'x', passkey })).status).toBe(200)
    expect(await stored()).toHaveLength(1)
  })

  test('certificates of the device lead the server nowhere', async () => {
    let asked = 0
    const lists = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch() {
        asked++
        return new Response('no list')
      },
    })
    const apples = { identifier: 'apple' } as const
    const known = SettingsService.getRootCertificates(apples)
    try {
      const { root, leaf } = await certificateWithList(lists.url.href)
      SettingsService.setRootCertificates({ ...apples, certificates: [root] })
      const { fields, options } = await alice.openNewPasskey(alice.recoveryCodes.pop())
      const statement = new Map<Cbor, Cbor>([['x5c', [leaf]]])
      const passkey = new PasskeyDevice(pds.url).create(options, { format: 'apple', statement })
      expect((await alice.browser.send(alice.path, { ...fields, passkey })).status).toBe(200)
      expect(asked).toBe(0)
    } finally {
      SettingsService.setRootCertificates({ ...apples, certificates: known })
      await lists.stop(true)
    }
  })

  test.each([['nothing', ''], ...malformed])('%s is no answer', async (_, passkey) => {
    const { fields } = await alice.openNewPasskey(alice.recoveryCodes.pop())
    expect((await alice.browser.send(alice.path, { ...fields, passkey })).status).toBe(200)
    expect(await stored()).toHaveLength(1)
  })

  test('an answer counts once, in its browser, for its account, for minutes', async () => {
    const other = new PasskeyDevice(pds.url)
    const { fields, options } = await alice.openNewPasskey(alice.recoveryCodes.pop())
    // Another browser of the same account, and another account in the same browser.
    const elsewhere = new FactorHolder(pds, alice.account)
    await elsewhere.signIn(alice.recoveryCodes.pop())
    const theirs = hiddenFields((await elsewhere.browser.open(elsewhere.path)).body)
    const passkey = other.create(options)
    const stolen = { ...fields, form_token: theirs.form_token!, passkey }
    expect((await elsewhere.browser.send(alice.path, stolen)).body).toContain('too long')
    const bob = await newHolder()
    await bob.openNewPasskey()
    const { form_token = '' } = hiddenFields((await bob.browser.open(bob.path)).body)
    const crossed = { account: bob.account.did, form_token, change: 'confirm-passkey', passkey }
    expect((await bob.browser.send(bob.path, crossed)).body).toContain('too long')
    expect(await pds.count('passkey', { did: bob.account.did })).toBe(0)

    const answers = await Promise.all([1, 2, 3].map(() => alice.browser.send(alice.path, { ...fields, passkey })))
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 200, 303])
    expect(await stored()).toHaveLength(2)
    const again = { ...fields, passkey: new PasskeyDevice(pds.url).create(options) }
    expect((await alice.browser.send(alice.path, again)).status).toBe(200)

    const late = await alice.openNewPasskey(alice.recoveryCodes.pop())
    pds.clock.advance({ secs: 601 })
    const expired = { ...late.fields, passkey: other.create(late.options) }
    expect((await alice.browser.send(alice.path, expired)).body).toContain('too long')
    expect(await stored()).toHaveLength(2)
  })

  test('a stolen session makes none: it has no challenge', async () => {
    const { form_token = '' } = hiddenFields((await alice.browser.open(alice.path)).body)
    const form = { account: alice.account.did, form_token, change: 'confirm-passkey', name: 'x' }
    // The challenges of other ceremonies, which strangers get.
    const open = passkeyOptionsOn((await alice.browser.open('/account/sign-in')).body)!
    const beside = (await enterPassword(alice.browser)).options
    for (const { challenge } of [open, beside]) {
      const passkey = new PasskeyDevice(pds.url).create({
        challenge,
        rp: { id: 'localhost' },
        user: { id: 'x', name: 'x' },
      })
      expect((await alice.browser.send(alice.path, { ...form, passkey })).status).toBe(200)
    }
    expect(await stored()).toHaveLength(1)
  })

  test('one that was made before the sign-in ended is not added', async () => {
    const { fields, options } = await alice.openNewPasskey(alice.recoveryCodes.pop())
    await alice.browser.send('/account/sign-out', fields)
    const passkey = new PasskeyDevice(pds.url).create(options)
    expect((await alice.browser.send(alice.path, { ...fields, passkey })).headers.get('location')).toContain(
      '/account/sign-in',
    )
    expect(await stored()).toHaveLength(1)
  })

  test('no two accounts have the same credential, nor one account twice', async () => {
    const { id } = device.credentials[0]!
    const bob = await newHolder()
    for (const holder of [bob, alice]) {
      const { fields, options } = await holder.openNewPasskey(holder === alice ? alice.recoveryCodes.pop() : '')
      const passkey = new PasskeyDevice(pds.url).create(options, { id })
      expect((await holder.browser.send(holder.path, { ...fields, passkey })).body).toContain('already in use')
    }
    expect(await pds.count('passkey', { did: bob.account.did })).toBe(0)
    expect((await alice.openNewPasskey(alice.recoveryCodes.pop())).options.excludeCredentials).toHaveLength(1)
  })

  test('an account has ten at most, also when they are made at once', async () => {
    const pages = []
    for (let i = 0; i < 12; i++) {
      const asked = await alice.change('add-passkey')
      const proof = { ...hiddenFields(asked.body), passkey: device.get(passkeyOptionsOn(asked.body)!) }
      const { body } = await alice.browser.send(alice.path, proof)
      pages.push({ fields: hiddenFields(body), options: passkeyOptionsOn(body)! })
    }
    await Promise.all(
      pages.map(({ fields, options }) =>
        alice.browser.send(alice.path, { ...fields, passkey: new PasskeyDevice(pds.url).create(options) }),
      ),
    )
    expect(await stored()).toHaveLength(10)
    expect((await alice.browser.open(alice.path)).body).toContain('as many passkeys as an account can have')
  })
})

describe('using one', () => {
  const foreign = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
  const allLies = Object.entries({
    ...lies,
    'the other ceremony': { type: 'webauthn.create' },
    'the signature of another key': { signer: foreign },
    'the account of another person': { userHandle: randomBytes(32).toString('base64url') },
    'an unknown credential': { id: randomBytes(32) },
  } satisfies Record<string, Tampering>)

  test.each(allLies)('%s opens no account', async (_, tampering) => {
    const browser = new CookieBrowser(pds)
    expect((await alice.enterWith(device, browser, tampering)).status).toBe(200)
    expect(await browser.signedIn()).toBeNull()
    const { fields, options, ...asked } = await enterPassword()
    const passkey = device.get(options, tampering)
    expect((await asked.browser.send('/account/sign-in', { ...fields, passkey })).body).toContain('One more step')
    expect(await asked.browser.signedIn()).toBeNull()
  })

  test.each(malformed)('%s is no answer', async (_, passkey) => {
    const browser = new CookieBrowser(pds)
    expect(await browser.send('/account/sign-in', { passkey })).toMatchObject({ status: 200 })
    expect(await browser.signedIn()).toBeNull()
  })

  test('an answer counts once, also when it is sent at once', async () => {
    for (const counts of [true, false]) {
      alice = await newHolder()
      device = await alice.addPasskey(new PasskeyDevice(pds.url, counts))
      const browser = new CookieBrowser(pds)
      const { body } = await browser.open('/account/sign-in')
      const form = { passkey: device.get(passkeyOptionsOn(body)!) }
      const cookies = [...browser.cookies]
      const answers = await Promise.all(
        [1, 2, 3, 4].map(() => {
          const copy = new CookieBrowser(pds)
          for (const [name, value] of cookies) copy.cookies.set(name, value)
          return copy.send('/account/sign-in', form)
        }),
      )
      expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 200, 200, 303])
      expect((await browser.send('/account/sign-in', form)).status).toBe(200)
      const { fields, options, ...asked } = await enterPassword()
      const proof = { ...fields, passkey: device.get(options) }
      const both = await Promise.all([1, 2].map(() => asked.browser.send('/account/sign-in', proof)))
      expect(both.filter(({ status }) => status === 303)).toHaveLength(1)
    }
  })

  test('an answer is good in its browser alone, for ten minutes, and for what it was asked for', async () => {
    const browser = new CookieBrowser(pds)
    const { body } = await browser.open('/account/sign-in')
    const options = passkeyOptionsOn(body)!
    const elsewhere = new CookieBrowser(pds)
    await elsewhere.open('/account/sign-in')
    expect((await elsewhere.send('/account/sign-in', { passkey: device.get(options) })).body).toContain('too long')
    // Beside the password, and for a new passkey.
    const { fields, ...asked } = await enterPassword(browser)
    expect((await browser.send('/account/sign-in', { ...fields, passkey: device.get(options) })).status).toBe(200)
    expect((await browser.send('/account/sign-in', { passkey: device.get(asked.options) })).status).toBe(200)
    expect(await browser.signedIn()).toBeNull()
    pds.clock.advance({ secs: 601 })
    expect((await browser.send('/account/sign-in', { passkey: device.get(options) })).body).toContain('too long')
  })

  test('a device that counted fewer uses than before is refused, and its holder is told', async () => {
    const browser = new CookieBrowser(pds)
    await alice.enterWith(device, browser)
    await alice.enterWith(device, browser)
    for (const count of [0, 1, 2]) {
      const copy = new CookieBrowser(pds)
      expect((await alice.enterWith(device, copy, { count })).body).toContain('there may be a copy')
      expect(await copy.signedIn()).toBeNull()
    }
    expect(await subjects()).toContainEqual(expect.stringContaining('may have been copied'))
    // A signature of another key tells nothing about the device.
    const mails = (await subjects()).length
    await alice.enterWith(device, new CookieBrowser(pds), { count: 1, signer: foreign })
    expect(await subjects()).toHaveLength(mails)
    expect(await alice.enterWith(device, new CookieBrowser(pds), { count: 100 })).toMatchObject(entered)
  })

  test('a device that counts nothing is used again and again', async () => {
    const bob = await newHolder()
    const synced = await bob.addPasskey(new PasskeyDevice(pds.url, false))
    for (let i = 0; i < 3; i++) expect(await bob.enterWith(synced, new CookieBrowser(pds))).toMatchObject(entered)
    expect((await bob.browser.open(bob.path)).body).toContain('Your other devices may have it too')
  })

  test('wrong answers close nothing: the recovery codes go on', async () => {
    for (let i = 0; i < 10; i++) await alice.enterWith(device, new CookieBrowser(pds), { signer: foreign })
    const { fields, options, browser } = await enterPassword()
    for (let i = 0; i < 10; i++)
      await browser.send('/account/sign-in', { ...fields, passkey: device.get(options, { signer: foreign }) })
    expect(await login({ authFactorToken: alice.recoveryCodes[0] })).toMatchObject({ status: 200 })
  })

  test('codes that were guessed wrong do not close the passkey', async () => {
    for (let i = 0; i < 9; i++) await login({ authFactorToken: '000000' })
    expect(await login({ authFactorToken: alice.recoveryCodes[0] })).toMatchObject({ status: 429 })
    expect(await alice.enterWith(device, new CookieBrowser(pds))).toMatchObject(entered)
  })
})

test('a browser that hides where its forms come from gets one cookie for all that is in a page', async () => {
  const browser = new CookieBrowser(pds)
  const page = await browser.open('/account/sign-in')
  expect(page.headers.getSetCookie()).toHaveLength(1)
  const form = { ...hiddenFields(page.body), passkey: device.get(passkeyOptionsOn(page.body)!) }
  expect(await browser.send('/account/sign-in', form, { origin: 'null' })).toMatchObject(entered)
})

describe('an app', () => {
  const client = new OAuthClient(pds)

  async function consentPage(browser: CookieBrowser) {
    const url = client.authorizeUrl(await client.requestUri({ login_hint: alice.account.handle }))
    const { pathname, search } = new URL(url)
    const { body } = await browser.open(pathname + search)
    return { path: pathname + search, body: String(body), fields: hiddenFields(body), options: passkeyOptionsOn(body)! }
  }

  test('is let in with a passkey, once, inside its own authorization', async () => {
    const browser = new CookieBrowser(pds)
    const { path, fields, options, body } = await consentPage(browser)
    expect(body).toContain('Allow with a passkey')
    const form = { ...fields, action: 'approve', granted_scope: 'transition:generic', passkey: device.get(options) }
    const answers = await Promise.all([1, 2].map(() => browser.send(path, form)))
    const locations = answers.flatMap(({ headers }) => headers.get('location') ?? [])
    expect(locations.filter((location) => location.includes('code='))).toHaveLength(1)
  })

  test('is not let in by another person than the one that was chosen', async () => {
    const bob = await newHolder()
    const other = await bob.addPasskey()
    const { path, fields, options } = await consentPage(alice.browser)
    const form = { ...fields, action: 'approve', account: alice.account.did, passkey: other.get(options) }
    expect((await alice.browser.send(path, form)).body).toContain('belongs to another account')
    const lie = { ...form, passkey: device.get(options, { origin: 'https://evil.example' }) }
    expect((await alice.browser.send(path, lie)).body).toContain('was not accepted')
  })
})

test('codes that come with a passkey are shown once', async () => {
  const bob = await newHolder()
  const { fields, options } = await bob.openNewPasskey()
  const { body } = await bob.browser.send(bob.path, { ...fields, passkey: new PasskeyDevice(pds.url).create(options) })
  expect(codesOn(String(body))).toHaveLength(10)
  expect((await bob.browser.open(bob.path)).body).toContain('You have 10 recovery codes left')
})

test('nobody makes recovery codes in advance: an account without a factor has none', async () => {
  const bob = await newHolder()
  const thief = new CookieBrowser(pds)
  await bob.signIn('', thief)
  const { status, body } = await bob.change('new-codes', thief)
  expect([status, codesOn(String(body))]).toEqual([400, []])
  await bob.addPasskey()
  expect(bob.recoveryCodes).toHaveLength(10)
})

test('codes that were made in advance, as an earlier version let people do, end with the first passkey', async () => {
  const [bob, planted] = [await newHolder(), alice.recoveryCodes]
  await pds.damage('factor_recovery_code', { did: alice.account.did }, { did: bob.account.did })
  await bob.addPasskey()
  expect(bob.recoveryCodes).toHaveLength(10)
  expect(bob.recoveryCodes).not.toContain(planted[0]!)
  expect(await pds.count('factor_recovery_code', { did: bob.account.did })).toBe(10)
})

test('a database that fails when passkeys are used for the first time keeps none from being used later', async () => {
  await using fresh = await startPds({ rateLimit: { enabled: false } })
  const bob = new FactorHolder(fresh, await createAccount(fresh, 'bob'))
  await bob.signIn()
  const restore = await fresh.hide('server_secret')
  expect((await bob.change('add-passkey')).status).toBe(500)
  await restore()
  const key = await bob.addPasskey()
  expect(await bob.enterWith(key, new CookieBrowser(fresh))).toMatchObject(entered)
})
