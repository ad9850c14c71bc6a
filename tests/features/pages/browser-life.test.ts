/** How long a browser stays signed in, and what asks once more who sits in front of it. */
import { describe, expect, test } from 'bun:test'
import { createAccount, PASSWORD, type TestAccount } from '../../support/clients/account.ts'
import { passkeyOptionsOn, FactorHolder } from '../../support/clients/factor-holder.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { hiddenFields, loopbackClientId, OAuthClient } from '../../support/clients/oauth-client.ts'
import { registerAgent } from '../../support/clients/registered-agent.ts'
import { newRecoveryCode, newShare, putShare, release, withMasterKey } from '../../support/clients/recovery.ts'
import { decisionOf, sendDecision } from '../../support/clients/wallet-consent.ts'
import { CookieBrowser } from '../../support/clients/wallet-sign-in.ts'
import { sovereignAccount, walletSession } from '../../support/clients/wallet.ts'
import { ADMIN_TOKEN } from '../../support/servers/config.ts'
import { beforeTransaction } from '../../support/interruptions.ts'
import { setUp } from '../../support/set-up.ts'
import { atOneNode } from '../../support/turns.ts'
import { useWorld } from '../../support/world.ts'

const { pds } = useWorld({
  config: { rateLimit: { enabled: false }, accounts: { passwordOptional: true }, ...withMasterKey },
})

const HOUR = 3600

/** Signs in. Returns the browser, and the cookie as the browser is told to keep it. */
async function enter(
  account: Pick<TestAccount, 'did'>,
  { stays = false, browser = new CookieBrowser(pds) }: { stays?: boolean; browser?: CookieBrowser } = {},
) {
  const fields = { identifier: account.did, password: PASSWORD, ...(stays && { remember: 'yes' }) }
  const { headers } = await browser.send('/account/sign-in', fields)
  return { browser, cookie: headers.getSetCookie().find((one) => one.startsWith('holdfast=')) ?? '' }
}

function copyOf(browser: CookieBrowser): CookieBrowser {
  const copy = new CookieBrowser(pds)
  for (const [name, value] of browser.cookies) copy.cookies.set(name, value)
  return copy
}

const maxAgeOf = (cookie: string): number | null => Number(/Max-Age=(\d+)/.exec(cookie)?.[1] ?? Number.NaN) || null

async function formToken(browser: CookieBrowser): Promise<string> {
  return hiddenFields((await browser.open('/account')).body)['form_token'] ?? ''
}

/** A page view, and what is noted after it. */
async function view(browser: CookieBrowser): Promise<string | null> {
  const did = await browser.signedIn()
  await pds.ctx.background.settled()
  return did
}

describe('a browser that was not asked to stay signed in', () => {
  test('forgets its cookie when it closes, and is signed out after three hours without use', async () => {
    const ann = await createAccount(pds, 'ann')
    const { browser, cookie } = await enter(ann)
    expect(maxAgeOf(cookie)).toBe(null)
    pds.clock.advance({ secs: 2 * HOUR + 3500 })
    expect(await view(browser)).toBe(ann.did)
    pds.clock.advance({ secs: 3 * HOUR })
    expect(await view(browser)).toBe(null)
    expect(await view(copyOf(browser))).toBe(null)
  })

  test('goes on while it is used, for twelve hours', async () => {
    const ben = await createAccount(pds, 'ben')
    const { browser } = await enter(ben)
    for (let hour = 2; hour < 12; hour += 2) {
      pds.clock.advance({ secs: 2 * HOUR })
      expect([hour, await view(browser)]).toEqual([hour, ben.did])
    }
    pds.clock.advance({ secs: 2 * HOUR })
    expect(await view(browser)).toBe(null)
  })
})

describe('a browser that was asked to stay signed in', () => {
  test('is signed out after seven days without use', async () => {
    const cat = await createAccount(pds, 'cat')
    const { browser, cookie } = await enter(cat, { stays: true })
    expect(maxAgeOf(cookie)).toBe(30 * 24 * HOUR)
    pds.clock.advance({ days: 6 })
    expect(await view(browser)).toBe(cat.did)
    pds.clock.advance({ days: 7 })
    expect(await view(browser)).toBe(null)
  })

  test('goes on while it is used, for thirty days', async () => {
    const dan = await createAccount(pds, 'dan')
    const { browser } = await enter(dan, { stays: true })
    for (let day = 5; day < 30; day += 5) {
      pds.clock.advance({ days: 5 })
      expect([day, await view(browser)]).toEqual([day, dan.did])
    }
    pds.clock.advance({ days: 5 })
    expect(await view(browser)).toBe(null)
  })

  test('is asked to sign in again by the name that it knows; any other browser tells none', async () => {
    const eve = await createAccount(pds, 'eve')
    const [{ browser: lasting }, { browser: passing }] = [await enter(eve, { stays: true }), await enter(eve)]
    pds.clock.advance({ days: 8 })
    const target = async (browser: CookieBrowser) => (await browser.open('/account')).headers.get('location')
    expect(await target(lasting)).toBe(`/account/sign-in?identifier=${eve.handle}`)
    expect(await target(passing)).toBe('/account/sign-in')
  })

  test('stays so when its password is changed there', async () => {
    const fay = await createAccount(pds, 'fay')
    const { browser } = await enter(fay, { stays: true })
    const form = { account: fay.did, form_token: await formToken(browser), current: PASSWORD, next: 'another password' }
    const { status, headers } = await browser.send('/account/password', form)
    expect(status).toBe(303)
    expect(maxAgeOf(headers.getSetCookie().join())).toBe(30 * 24 * HOUR)
    pds.clock.advance({ days: 6 })
    expect(await view(browser)).toBe(fay.did)
  })
})

test('a copied cookie opens nothing once the sign-in has ended, and a form that comes with it changes nothing', async () => {
  const gil = await createAccount(pds, 'gil')
  const { browser } = await enter(gil, { stays: true })
  const thief = copyOf(browser)
  const form = { account: gil.did, form_token: await formToken(browser), name: 'mine' }
  pds.clock.advance({ days: 30, secs: 1 })
  for (const path of ['app-passwords', 'sharing/invite', 'archive', 'deactivate', 'sessions', 'browsers'])
    expect((await thief.send(`/account/${path}`, form)).headers.get('location')).toContain('/account/sign-in')
  expect(await pds.count('app_password', { did: gil.did })).toBe(0)
})

test('page views write once an hour at most', async () => {
  const hal = await createAccount(pds, 'hal')
  const { browser } = await enter(hal, { stays: true })
  pds.clock.advance({ secs: HOUR })
  await view(browser)
  const before = await pds.rows('oauth_device_account', { did: hal.did })
  for (let minute = 0; minute < 59; minute += 10) {
    pds.clock.advance({ secs: 540 })
    for (const path of ['/account', '/account/activity', '/account/identity']) await browser.open(path)
  }
  await pds.ctx.background.settled()
  expect(await pds.rows('oauth_device_account', { did: hal.did })).toEqual(before)
  pds.clock.advance({ secs: 400 })
  await view(browser)
  expect(await pds.rows('oauth_device_account', { did: hal.did })).not.toEqual(before)
})

test('letting an app in counts as use', async () => {
  const ida = await createAccount(pds, 'ida')
  const { browser } = await enter(ida, { stays: true })
  pds.clock.advance({ days: 5 })
  const client = new OAuthClient(pds, loopbackClientId('atproto', 'http://127.0.0.1/'), null, 'http://127.0.0.1/')
  const path = client.authorizeUrl(await client.requestUri({ scope: 'atproto' })).slice(pds.url.length)
  const fields = { ...hiddenFields((await browser.open(path)).body), account: ida.did, action: 'approve' }
  expect((await browser.send(path, fields)).headers.get('location')).toContain('code=')
  await pds.ctx.background.settled()
  pds.clock.advance({ days: 5 })
  expect(await view(browser)).toBe(ida.did)
})

describe('two accounts in one browser', () => {
  test('one that stays does not keep one that was to pass', async () => {
    const [jan, kim] = [await createAccount(pds, 'jan'), await createAccount(pds, 'kim')]
    const { browser } = await enter(jan)
    const { cookie } = await enter(kim, { stays: true, browser })
    expect(maxAgeOf(cookie)).toBe(30 * 24 * HOUR)
    pds.clock.advance({ secs: 4 * HOUR })
    expect((await browser.open('/account')).body).not.toContain(jan.handle)
    expect(await view(browser)).toBe(kim.did)
  })

  test('one that passes does not end one that stays', async () => {
    const [lea, max] = [await createAccount(pds, 'lea'), await createAccount(pds, 'max')]
    const { browser } = await enter(lea, { stays: true })
    pds.clock.advance({ days: 1 })
    const { cookie } = await enter(max, { browser })
    expect(maxAgeOf(cookie)).toBe(29 * 24 * HOUR)
    pds.clock.advance({ days: 1 })
    expect(await view(browser)).toBe(lea.did)
  })

  test('one that was to stay is known by its name when the other signs in, until its thirty days are over', async () => {
    const [una, val] = [await createAccount(pds, 'una'), await createAccount(pds, 'val')]
    const { browser } = await enter(una, { stays: true })
    pds.clock.advance({ days: 8 })
    await enter(val, { stays: true, browser })
    const target = async () => (await browser.open(`/account?account=${una.did}`)).headers.get('location')
    expect(await target()).toBe(`/account/sign-in?identifier=${una.handle}`)
    pds.clock.advance({ days: 6 })
    await view(browser)
    pds.clock.advance({ days: 6 })
    await view(browser)
    pds.clock.advance({ days: 6 })
    expect(await view(browser)).toBe(val.did)
    pds.clock.advance({ days: 5 })
    expect(await target()).toBe('/account/sign-in')
  })
})

test('an address that names no account does not show the one that signed in last', async () => {
  const ona = await createAccount(pds, 'ona')
  const { browser } = await enter(ona)
  for (const wanted of ['nonsense', `${ona.did}x`, ona.handle, '']) {
    const { headers } = await browser.open(`/account?account=${encodeURIComponent(wanted)}`)
    expect(headers.get('location')).toBe('/account/sign-in')
  }
  expect(await view(browser)).toBe(ona.did)
})

test('the account page and operators are told when each browser is signed out', async () => {
  const nia = await createAccount(pds, 'nia')
  const [{ browser }] = [await enter(nia, { stays: true }), await enter(nia)]
  const { body } = await browser.open('/account')
  expect(body).toMatch(
    /Ends <time[^>]*>[^<]+<\/time> if it is not used again, and <time[^>]*>[^<]+<\/time> at the latest/,
  )
  expect(body).toContain('Ends when the browser closes, after 3 hours without use, or 12 hours after the sign-in')
  const { body: told } = await request(`${pds.url}/v1/admin/accounts/${nia.did}/access`, {
    headers: bearer(ADMIN_TOKEN),
  })
  const browsers = (told.access as { kind: string; expiresAt: string }[]).filter(({ kind }) => kind === 'browser')
  const hours = browsers.map(({ expiresAt }) => (Date.parse(expiresAt) - pds.clock.now()) / HOUR / 1000)
  expect(hours.map(Math.round).toSorted((a, b) => a - b)).toEqual([3, 7 * 24])
  pds.clock.advance({ days: 1 })
  expect(await browser.signedIn()).toBe(nia.did)
  expect((await browser.open('/account')).body).not.toContain('Ends when the browser closes')
})

test('a browser from before the update ends as the server that signed it in had told it', async () => {
  const [oda, pia] = [await createAccount(pds, 'oda'), await createAccount(pds, 'pia')]
  const [{ browser: lasting }, { browser: passing }] = [await enter(oda, { stays: true }), await enter(pia)]
  for (const { did } of [oda, pia]) await pds.damage('oauth_device_account', { did }, { remembered: null })
  const [row] = await pds.rows('oauth_device_account', { did: pia.did })
  await pds.damage('oauth_device', { token_hash: row!.token_hash }, { expires_at: pds.clock.now() + HOUR * 1000 })
  pds.clock.advance({ secs: HOUR + 1 })
  expect(await view(passing)).toBe(null)
  pds.clock.advance({ days: 6 })
  expect(await view(lasting)).toBe(oda.did)
})

const shareOf = async (did: string) => (await pds.rows('escrow_share', { did }))[0]
const deposit = async (account: TestAccount): Promise<TestAccount> => {
  await putShare(pds, account.accessJwt, newShare())
  return account
}
/** An account whose document this server serves. */
async function onOwnDomain(account: TestAccount): Promise<TestAccount> {
  const did = `did:web:${account.handle.replace('.test', '.example.com')}`
  await pds.damage('account', { did: account.did }, { did })
  await pds.plant('web_document', { did, document: JSON.stringify({ id: did }) })
  await pds.damage('web_document', { did }, { hosted_since: pds.clock.now() })
  return { ...account, did }
}

/** Forms that open another way in, hide the account or take away how it is recovered, with what shows that they did. */
const grave: readonly [
  path: string,
  fields: Record<string, string>,
  done: (did: string) => Promise<boolean>,
  prepared?: (account: TestAccount) => Promise<TestAccount>,
][] = [
  ['app-passwords', { name: 'mine' }, async (did) => (await pds.count('app_password', { did })) > 0],
  ['sharing/invite', { delegate: 'zoe.test' }, async (did) => (await pds.count('delegation', { did })) > 0],
  [
    'handle',
    { handle: 'renamed.test' },
    async (did) => (await pds.count('account', { did, handle: 'renamed.test' })) > 0,
  ],
  ['deactivate', {}, async (did) => (await pds.rows('account', { did }))[0]!.deactivated_at !== null],
  ['identity/escrow/delete', {}, async (did) => (await shareOf(did)) === undefined, deposit],
  [
    'identity/escrow/cancel',
    {},
    async (did) => (await shareOf(did))!.requested_at === null,
    async (account) => {
      await deposit(account)
      await release(pds, account.did, await newRecoveryCode(pds, account))
      return account
    },
  ],
  [
    'identity/hosting',
    { enabled: 'no' },
    async (did) => (await pds.rows('web_document', { did }))[0]!.hosted_since === null,
    onOwnDomain,
  ],
]

describe('an hour after the sign-in', () => {
  test.each(grave)('%s asks for the password, and then does what the form said', async (...given) => {
    const [path, fields, done, prepared = async (account: TestAccount) => account] = given
    if (path === 'sharing/invite') await createAccount(pds, 'zoe')
    const rex = await prepared(await createAccount(pds, `rex-${path.split('/').at(-1)}`))
    const { browser } = await enter(rex, { stays: true })
    pds.clock.advance({ secs: HOUR + 1 })
    const form = { account: rex.did, form_token: await formToken(browser), ...fields }
    const thief = copyOf(browser)
    const asked = await browser.send(`/account/${path}`, form)
    expect(asked.body).toContain('Confirm that it is you')
    expect(await done(rex.did)).toBe(false)
    const wrong = await thief.send(`/account/${path}`, { ...hiddenFields(asked.body), password: 'not it' })
    expect(wrong.body).toContain('Confirm that it is you')
    expect(await done(rex.did)).toBe(false)
    await browser.send(`/account/${path}`, { ...hiddenFields(wrong.body), password: PASSWORD })
    expect(await done(rex.did)).toBe(true)
    // The browser has another cookie now, and goes on.
    expect(await thief.signedIn()).toBe(null)
    expect(await browser.signedIn()).toBe(rex.did)
  })

  test('a handle of one’s own domain asks too, before it is looked up', async () => {
    const quin = await createAccount(pds, 'quin')
    const { browser } = await enter(quin)
    pds.clock.advance({ secs: HOUR + 1 })
    const form = { account: quin.did, form_token: await formToken(browser), handle: 'quin.example' }
    expect((await browser.send('/account/handle/domain', form)).body).toContain('Confirm that it is you')
  })

  test('moving away asks too, before it looks where the identity is', async () => {
    const { did } = await createAccount(pds, 'quill')
    const { browser } = await enter({ did })
    pds.clock.advance({ secs: HOUR + 1 })
    const form = { account: did, form_token: await formToken(browser) }
    for (const act of ['keep', 'delete'])
      expect((await browser.send('/account/move-away', { ...form, act })).body).toContain('Confirm that it is you')
  })

  test('an archive is restored once the password was given on a page of its own', async () => {
    const { did, accessJwt, call } = await createAccount(pds, 'rae')
    const exported = await fetch(`${pds.url}/v1/account/archive`, { headers: bearer(accessJwt) })
    const archive = new Blob([await exported.arrayBuffer()])
    await call('com.atproto.repo.createRecord', { json: { repo: did, collection: 'com.example.note', record: {} } })
    const { browser } = await enter({ did }, { stays: true })
    const page = '/account/archive/import'
    const upload = async () => {
      const form = new FormData()
      const fields = { account: did, form_token: await formToken(browser), sure: 'yes' }
      for (const [name, value] of Object.entries(fields)) form.append(name, value)
      form.append('file', archive, 'archive.zip')
      return browser.upload(page, form)
    }
    const records = async () =>
      (await call(`com.atproto.repo.listRecords?repo=${did}&collection=com.example.note`)).body.records.length
    pds.clock.advance({ secs: HOUR + 1 })
    expect((await browser.open(page)).body).not.toContain('type="file"')
    const late = await upload()
    expect([late.status, late.body]).toEqual([400, expect.stringContaining('signed in more than an hour ago')])
    expect(await records()).toBe(1)
    const asked = await browser.send(`${page}/begin`, { account: did, form_token: await formToken(browser) })
    expect(asked.body).toContain('Confirm that it is you')
    const proven = await browser.send(`${page}/begin`, { ...hiddenFields(asked.body), password: PASSWORD })
    expect(proven.headers.get('location')).toBe(`${page}?${new URLSearchParams({ account: did })}`)
    expect((await browser.open(page)).body).toContain('type="file"')
    expect((await upload()).body).toContain('The whole archive has been taken over')
    expect(await records()).toBe(0)
  })

  test('neither is a handle added, nor another one made the first by removing it', async () => {
    const uma = await createAccount(pds, 'uma-two')
    const { browser } = await enter(uma, { stays: true })
    const form = async () => ({ account: uma.did, form_token: await formToken(browser) })
    await browser.send('/account/handles', { ...(await form()), handle: 'uma-three' })
    pds.clock.advance({ secs: HOUR + 1 })
    const asked = 'Confirm that it is you'
    expect((await browser.send('/account/handles', { ...(await form()), handle: 'uma-four' })).body).toContain(asked)
    const removal = await browser.send('/account/handles/remove', { ...(await form()), handle: uma.handle })
    expect(removal.body).toContain(asked)
    expect(await pds.rows('account', { did: uma.did }, ['handle'])).toEqual([{ handle: uma.handle }])
    await browser.send('/account/handles/remove', { ...hiddenFields(removal.body), password: PASSWORD })
    expect(await pds.rows('account', { did: uma.did }, ['handle'])).toEqual([{ handle: 'uma-three.test' }])
  })

  test('nothing else asks, and within the hour nothing does', async () => {
    const sam = await createAccount(pds, 'sam')
    const { browser } = await enter(sam, { stays: true })
    pds.clock.advance({ secs: HOUR - 1 })
    const form = { account: sam.did, form_token: await formToken(browser) }
    expect((await browser.send('/account/app-passwords', { ...form, name: 'one' })).body).toContain('class="secret"')
    pds.clock.advance({ secs: HOUR })
    expect((await browser.send('/account/app-passwords/revoke', { ...form, name: 'one' })).status).toBe(303)
    expect((await browser.send('/account/browsers', form)).status).toBe(303)
  })

  test('the second factor is asked for too, also in a browser that is trusted, or a passkey for both', async () => {
    const holder = new FactorHolder(pds, await createAccount(pds, 'tess'))
    const { account, browser } = holder
    await holder.signIn()
    await holder.addApp()
    const device = await holder.addPasskey(undefined, { code: holder.recoveryCodes.pop()! })
    const first = await browser.send('/account/sign-in', { identifier: account.did, password: PASSWORD })
    await browser.send('/account/sign-in', {
      ...hiddenFields(first.body),
      factor_code: holder.nextCode(),
      factor_trust: 'yes',
    })
    pds.clock.advance({ secs: HOUR + 1 })
    const made = () => pds.count('app_password', { did: account.did })
    const send = (fields: Record<string, string>) => browser.send('/account/app-passwords', fields)
    const ask = async (name: string) => send({ account: account.did, form_token: await formToken(browser), name })
    const asked = await ask('one')
    const again = await send({ ...hiddenFields(asked.body), password: PASSWORD })
    expect(again.body).toContain('factor_code')
    expect(again.body).not.toContain('factor_trust')
    expect((await send({ ...hiddenFields(again.body), factor_code: '000000' })).body).toContain('role="alert"')
    expect(await made()).toBe(0)
    expect((await send({ ...hiddenFields(again.body), factor_code: holder.nextCode() })).body).toContain(
      'class="secret"',
    )
    expect(await made()).toBe(1)
    pds.clock.advance({ secs: HOUR + 1 })
    const second = await ask('two')
    const passkey = device.get(passkeyOptionsOn(second.body)!)
    expect((await send({ ...hiddenFields(second.body), passkey })).body).toContain('class="secret"')
    expect(await made()).toBe(2)
  })

  test('another account does not stand in', async () => {
    const [uma, vic] = [new FactorHolder(pds, await createAccount(pds, 'uma')), await createAccount(pds, 'vic')]
    await uma.signIn()
    const device = await uma.addPasskey()
    const { browser } = await enter(vic)
    pds.clock.advance({ secs: HOUR + 1 })
    const form = { account: vic.did, form_token: await formToken(browser), name: 'mine' }
    const asked = await browser.send('/account/app-passwords', form)
    expect(passkeyOptionsOn(asked.body)).toBe(null)
    const entry = await browser.open('/account/sign-in')
    const passkey = device.get(passkeyOptionsOn(entry.body)!)
    const answer = await browser.send('/account/app-passwords', { ...hiddenFields(asked.body), passkey })
    expect(answer.body).toContain('role="alert"')
    expect(await pds.count('app_password', { did: vic.did })).toBe(0)
  })

  test.each([
    ['app-passwords', { name: 'one' }],
    ['email', { email: 'thief@example.com' }],
  ])('an account without a password signs in with its wallet before %s', async (path, fields) => {
    const wes = await sovereignAccount(pds, `wes-${path}`, { password: undefined })
    const browser = new CookieBrowser(pds)
    const enterByWallet = async () => {
      const begun = await browser.begin(wes.did)
      await sendDecision(pds, decisionOf(pds, wes, begun, { grantedScope: 'atproto', matchCode: begun.matchCode! }))
      await browser.complete(begun.requestId)
    }
    await enterByWallet()
    pds.clock.advance({ secs: HOUR + 1 })
    const state = async () => [
      await pds.count('app_password', { did: wes.did }),
      await pds.rows('account', { did: wes.did }, ['email']),
    ]
    const before = await state()
    const send = async () =>
      browser.send(`/account/${path}`, { account: wes.did, form_token: await formToken(browser), ...fields })
    const location = (await send()).headers.get('location')!
    expect(location).toBe(`/account/sign-in?identifier=${wes.handle}`)
    expect((await browser.open(location)).body).toContain('Use your wallet')
    expect(await state()).toEqual(before)
    await enterByWallet()
    await send()
    expect(await state()).not.toEqual(before)
  })
})

describe('a form whose browser is signed out before it takes effect', () => {
  const mate = setUp(() => createAccount(pds, 'mate'))
  /** Begins a transfer, which a device accepts. Returns the id of the device. */
  async function transferred({ did }: TestAccount): Promise<string> {
    const headers = bearer(await walletSession(pds, did))
    const { body } = await request(`${pds.url}/v1/transfer/initiate`, { method: 'POST', headers })
    const accept = { transferCode: body.transferCode, devicePublicKey: 'zPhone', platform: 'ios' }
    return (await request(`${pds.url}/v1/transfer/accept`, { json: accept })).body.deviceId
  }
  const forms: Record<string, (account: TestAccount) => Record<string, string> | Promise<Record<string, string>>> = {
    'app-passwords': () => ({ name: 'mine' }),
    email: () => ({ current: PASSWORD, email: 'mallory@example.com' }),
    handle: () => ({ handle: 'mallory' }),
    handles: () => ({ handle: 'mallory-too' }),
    'sharing/invite': () => ({ delegate: mate.handle }),
    deactivate: () => ({}),
    'identity/escrow/cancel': () => ({}),
    agents: async (account) => ({ id: (await registerAgent(pds, account)).id }),
    'wallet/transfer': async (account) => ({ device: await transferred(account) }),
    'wallet/devices': async (account) => ({ id: await transferred(account) }),
  }
  const stateOf = async ({ did }: TestAccount) => ({
    account: await pds.rows('account', { did }, ['handle', 'email', 'deactivated_at']),
    counts: await Promise.all(
      (['app_password', 'further_handle', 'delegation'] as const).map((table) => pds.count(table, { did })),
    ),
    share: await shareOf(did),
    agents: await pds.rows('agent_registration', { did }, ['status']),
    transfers: await pds.rows('transfer', { did }, ['status']),
    devices: await pds.rows('device', { owner: did }, ['revoked_at']),
  })
  let count = 0

  test.each(Object.entries(forms))('%s changes nothing', async (path, fields) => {
    const account = await createAccount(pds, `leaver${++count}`)
    await deposit(account)
    await release(pds, account.did, await newRecoveryCode(pds, account))
    const [{ browser }, other] = [await enter(account), await enter(account)]
    const form = { account: account.did, form_token: await formToken(browser), ...(await fields(account)) }
    const before = await stateOf(account)
    const everyoneElse = { account: account.did, form_token: await formToken(other.browser) }
    using _ = atOneNode(pds, 'the transactions of one node are interrupted')
    using __ = beforeTransaction(pds, async () => {
      expect((await other.browser.send('/account/browsers', everyoneElse)).status).toBe(303)
    })
    expect((await browser.send(`/account/${path}`, form)).body).toContain('You have been signed out')
    expect(await stateOf(account)).toEqual(before)
  })
})
