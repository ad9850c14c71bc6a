/**
 * Signing in to the account page with a wallet: what strangers, other browsers and other kinds of approval achieve,
 * which is nothing.
 */
import { beforeEach, describe, expect, test } from 'bun:test'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { createAccount, PASSWORD, type TestAccount } from '../../support/clients/account.ts'
import { request } from '../../support/clients/http.ts'
import { noticesTo } from '../../support/servers/mail.ts'
import { hiddenFields, loopbackClientId, OAuthClient } from '../../support/clients/oauth-client.ts'
import { startPds } from '../../support/servers/pds.ts'
import {
  completeConsent,
  decisionOf,
  openConsent,
  previewOf,
  sendDecision,
  statusOf,
  type WalletPath,
} from '../../support/clients/wallet-consent.ts'
import { CookieBrowser } from '../../support/clients/wallet-sign-in.ts'
import { sovereignAccount, transferAway } from '../../support/clients/wallet.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'

let browser: CookieBrowser
const { pds } = useWorld({ config: { rateLimit: { enabled: false }, accounts: { passwordOptional: true } } })
/** Has no password. */
const alice = setUp(() => sovereignAccount(pds, 'alice', { password: undefined }))
const mallory = setUp(() => sovereignAccount(pds, 'mallory'))
beforeEach(() => {
  browser = new CookieBrowser(pds)
})

type Begun = WalletPath & { clientId: string }
type Choice = NonNullable<Parameters<typeof decisionOf>[3]>

const decide = (begun: Begun, who = alice, choice: Choice = {}) =>
  sendDecision(pds, decisionOf(pds, who, begun, { grantedScope: 'atproto', matchCode: begun.matchCode!, ...choice }))
const approve = async (begun: Begun, who = alice): Promise<void> => {
  expect(await decide(begun, who)).toMatchObject({ status: 200, body: { status: 'approved' } })
}

describe('the way in', () => {
  test('a browser is signed in once a wallet has approved what it shows', async () => {
    const begun = await browser.begin()
    expect(await previewOf(pds, { user_code: begun.userCode })).toMatchObject({
      status: 200,
      body: {
        requestId: begun.requestId,
        clientId: pds.url,
        clientName: 'Account page of holdfast',
        redirectUri: `${pds.url}/account`,
        origin: pds.url,
        requestedScope: ['atproto'],
        loginHint: null,
        matchRequired: true,
      },
    })
    expect((await statusOf(pds, begun.requestId)).body).toEqual({ status: 'pending' })
    await approve(begun)
    const done = await browser.complete(begun.requestId)
    expect([done.status, done.headers.get('location')]).toEqual([303, '/account'])
    expect(await browser.signedIn()).toBe(alice.did)
  })

  test('the holder hears of a sign-in in a browser that was not used before, with advice for somebody without a password', async () => {
    const begun = await browser.begin()
    await approve(begun)
    await browser.complete(begun.requestId, {
      'user-agent': 'Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0',
    })
    const mail = (await noticesTo(pds, alice.email)).at(-1)!
    expect(mail.subject).toContain('New sign-in')
    expect(mail.text).toContain('a wallet that holds a key of its identity')
    expect(mail.text.toLowerCase()).not.toContain('password')
  })

  test('an account that has a password may use its wallet too, and keeps the other accounts of the browser', async () => {
    const bob = await createAccount(pds, 'bob')
    await browser.send('/account/sign-in', { identifier: bob.handle, password: bob.password })
    const begun = await browser.begin()
    await approve(begun, mallory)
    await browser.complete(begun.requestId)
    expect(await browser.signedIn()).toBe(mallory.did)
    expect((await browser.open(`/account?account=${encodeURIComponent(bob.did)}`)).status).toBe(200)
  })

  test('the token of the browser changes', async () => {
    browser.cookies.set('holdfast', 'A'.repeat(43))
    const begun = await browser.begin()
    await approve(begun)
    await browser.complete(begun.requestId)
    expect(browser.cookies.get('holdfast')).not.toBe('A'.repeat(43))
  })
})

describe('another browser', () => {
  test('cannot complete a sign-in that it did not begin, and does not spend it', async () => {
    const begun = await browser.begin()
    await approve(begun)
    const others = [new CookieBrowser(pds), new CookieBrowser(pds), new CookieBrowser(pds)]
    await others[1]!.begin()
    others[2]!.cookies.set('holdfast-form', 'not a token')
    for (const other of others) {
      const refused = await other.complete(begun.requestId)
      expect([refused.status, refused.headers.get('location')]).toEqual([303, '/account/sign-in?done=expired'])
      expect(await other.signedIn()).toBeNull()
      expect((await other.open(`/account/sign-in/wallet?request_id=${begun.requestId}`)).status).toBe(303)
    }
    await browser.complete(begun.requestId)
    expect(await browser.signedIn()).toBe(alice.did)
  })

  test('a form of another site neither begins nor completes', async () => {
    const begun = await browser.begin()
    await approve(begun)
    const elsewhere: Record<string, string>[] = [
      { origin: 'https://evil.example' },
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
      { origin: 'null' },
    ]
    for (const headers of elsewhere) {
      expect((await browser.send('/account/sign-in/wallet', {}, headers)).status).toBe(403)
      expect((await browser.complete(begun.requestId, headers)).status).toBe(403)
    }
    expect(await browser.signedIn()).toBeNull()
  })

  test('the page that waits is not shown inside another page', async () => {
    const { requestId } = await browser.begin()
    const { status } = await request(`${pds.url}/account/sign-in/wallet?request_id=${requestId}`, {
      headers: { cookie: browser.cookie, 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe' },
    })
    expect(status).toBe(400)
  })
})

describe('one kind of approval is no other', () => {
  test('the approval of a sign-in never becomes a code for an app', async () => {
    const begun = await browser.begin()
    await approve(begun)
    for (const headers of [{}, { cookie: browser.cookie }] as Record<string, string>[]) {
      const answer = await completeConsent(pds, begun.requestId, headers)
      expect([answer.status, answer.headers.get('location')]).toEqual([400, null])
    }
    expect(await pds.rows('oauth_code', {}, ['code_hash'])).toEqual([])
    // It is not spent either.
    await browser.complete(begun.requestId)
    expect(await browser.signedIn()).toBe(alice.did)
  })

  test('the approval of an app never signs a browser in', async () => {
    const scope = 'atproto transition:generic'
    const app = new OAuthClient(pds, loopbackClientId(scope))
    await browser.begin()
    const consent = await openConsent(app, { scope, login_hint: alice.handle })
    expect((await sendDecision(pds, decisionOf(pds, alice, consent))).status).toBe(200)
    expect((await browser.complete(consent.requestId)).headers.get('location')).toBe('/account/sign-in?done=expired')
    expect(await browser.signedIn()).toBeNull()
    expect((await completeConsent(pds, consent.requestId)).status).toBe(303)
  })

  test('no app can pass for this server', async () => {
    await using secure = await startPds({ publicUrl: 'https://pds.example.com', rateLimit: { enabled: false } })
    const push = async (clientId: string) => {
      const app = new OAuthClient(secure, clientId, null, 'https://evil.example.com/callback')
      return (await app.push({ scope: 'atproto' })).body
    }
    for (const path of [
      '',
      '/',
      '/account',
      '/client.json',
      '/xrpc/com.atproto.sync.getBlob?did=did:web:evil.example.com&cid=x',
    ]) {
      const { error, error_description: reason } = await push(`https://pds.example.com${path}`)
      expect([path, error, reason]).toEqual([
        path,
        'invalid_client',
        expect.stringMatching(/https URL of a document|host of this server/),
      ])
    }
  })
})

describe('a sign-in ends', () => {
  test('with its completion, and of two at once one wins', async () => {
    const begun = await browser.begin()
    await approve(begun)
    const answers = await Promise.all([browser.complete(begun.requestId), browser.complete(begun.requestId)])
    expect(answers.map(({ headers }) => headers.get('location')).toSorted()).toEqual([
      '/account',
      '/account/sign-in?done=expired',
    ])
    expect((await browser.complete(begun.requestId)).headers.get('location')).toBe('/account/sign-in?done=expired')
    expect((await decide(begun)).status).toBe(404)
  })

  test('a sign-in ends with a denial', async () => {
    const begun = await browser.begin()
    expect(await decide(begun, alice, { decision: 'deny' })).toMatchObject({ status: 200, body: { status: 'denied' } })
    await browser.complete(begun.requestId)
    expect(await browser.signedIn()).toBeNull()
  })

  test('a sign-in ends after five minutes', async () => {
    const begun = await browser.begin()
    pds.clock.advance({ secs: 301 })
    expect((await decide(begun)).status).toBe(404)
    expect((await browser.complete(begun.requestId)).headers.get('location')).toBe('/account/sign-in?done=expired')
  })

  test('before it is approved, the page says what to do', async () => {
    const begun = await browser.begin()
    const early = await browser.complete(begun.requestId)
    expect(early.status).toBe(400)
    expect(early.body).toContain('Your wallet has not approved this request yet')
    expect(early.body).toContain(begun.userCode)
    await approve(begun)
    await browser.complete(begun.requestId)
    expect(await browser.signedIn()).toBe(alice.did)
  })

  test('when the account is deactivated, taken down or has its credentials ended after the approval', async () => {
    const kate = await sovereignAccount(pds, 'kate', { password: undefined })
    const endings = [
      () => pds.damage('account', { did: kate.did }, { deactivated_at: 1 }),
      () => pds.damage('account', { did: kate.did }, { deactivated_at: null, takedown_ref: 'x' }),
    ]
    for (const end of endings) {
      await pds.damage('account', { did: kate.did }, { deactivated_at: null, takedown_ref: null })
      const begun = await browser.begin()
      await approve(begun, kate)
      await end()
      await browser.complete(begun.requestId)
      expect(await browser.signedIn()).toBeNull()
    }
    expect((await decide(await browser.begin(), kate)).status).toBe(401)
  })

  test('when the password is changed after the approval, as in browsers that are signed in already', async () => {
    const lou = await sovereignAccount(pds, 'lou')
    const begun = await browser.begin()
    await approve(begun, lou)
    const other = new CookieBrowser(pds)
    await other.send('/account/sign-in', { identifier: lou.handle, password: PASSWORD })
    const { form_token = '' } = hiddenFields((await other.open('/account')).body)
    const change = { account: lou.did, form_token, current: PASSWORD, next: 'another good password' }
    expect((await other.send('/account/password', change)).status).toBe(303)
    await browser.complete(begun.requestId)
    expect(await browser.signedIn()).toBeNull()
  })
})

describe('a transfer to another device', () => {
  test('signs browsers out, and those that the old device has let in get no further', async () => {
    const moe = await sovereignAccount(pds, 'moe', { password: undefined })
    const [begun, known] = [await browser.begin(), new CookieBrowser(pds)]
    await approve(begun, moe)
    const before = await known.begin()
    await approve(before, moe)
    await known.complete(before.requestId)
    expect(await known.signedIn()).toBe(moe.did)
    await transferAway(pds, moe.did)
    await browser.complete(begun.requestId)
    expect([await browser.signedIn(), await known.signedIn()]).toEqual([null, null])
    // The device that holds a key of the identity lets them in again.
    const again = await known.begin()
    await approve(again, moe)
    await known.complete(again.requestId)
    expect(await known.signedIn()).toBe(moe.did)
  })
})

describe('a wallet', () => {
  test('repeats the number on the page', async () => {
    const begun = await browser.begin()
    const wrong = begun.matchCode === '11' ? '12' : '11'
    for (const matchCode of [undefined, '', wrong, `${begun.matchCode}0`])
      expect((await decide(begun, alice, { matchCode })).status).toBe(403)
    await approve(begun)
  })

  test('signs for this request and this server alone', async () => {
    const begun = await browser.begin()
    const other = await new CookieBrowser(pds).begin()
    const signed: Choice['signed'][] = [
      { request: other.requestId },
      { client: 'https://app.example.com/client.json' },
      { decision: 'deny' },
      { aud: 'did:web:elsewhere.example' as Did },
      { key: mallory.device.did },
    ]
    for (const one of signed) expect((await decide(begun, alice, { signed: one })).status).toBe(401)
    expect((await decide(begun, { ...alice, device: mallory.device })).status).toBe(401)
    expect((await statusOf(pds, begun.requestId)).body).toEqual({ status: 'pending' })
  })

  test('gets no more than the sign-in, whatever scope it signs', async () => {
    const begun = await browser.begin()
    expect((await decide(begun, alice, { grantedScope: 'atproto transition:generic' })).status).toBe(200)
    const [row] = await pds.rows('wallet_consent', { request_id: begun.requestId })
    expect(row!.granted_scope).toBe('atproto')
  })

  test('of another account does not answer for an account that is named', async () => {
    const begun = await browser.begin(alice.did)
    expect((await decide(begun, mallory)).status).toBe(401)
    await approve(begun)
  })
})

describe('an old sign-in', () => {
  test('is renewed by the wallet if the account has no password, and by the password if it has one', async () => {
    const begun = await browser.begin()
    await approve(begun)
    await browser.send('/account/sign-in/wallet/complete', { request_id: begun.requestId, remember: 'yes' })
    await browser.send('/account/sign-in', { identifier: mallory.handle, password: PASSWORD, remember: 'yes' })
    pds.clock.advance({ days: 8 })
    const wantedBy = async (account: TestAccount) => {
      const { headers } = await browser.open(`/account?account=${encodeURIComponent(account.did)}`)
      expect(headers.get('location')).toBe(`/account/sign-in?identifier=${account.handle}`)
      return (await browser.open(headers.get('location')!)).body
    }
    const ofMallory = await wantedBy(mallory)
    expect(ofMallory).toContain(`value="${mallory.handle}"`)
    expect(ofMallory).toContain('type="password"')
    const ofAlice = await wantedBy(alice)
    expect(ofAlice).toContain('Sign in again')
    expect(ofAlice).not.toContain('type="password"')
    const again = await browser.begin(alice.did)
    await approve(again)
    await browser.complete(again.requestId)
    expect((await browser.open(`/account?account=${encodeURIComponent(alice.did)}`)).status).toBe(200)
  })

  test('lets no app in, and the page of the app asks for the wallet', async () => {
    const begun = await browser.begin()
    await approve(begun)
    await browser.send('/account/sign-in/wallet/complete', { request_id: begun.requestId, remember: 'yes' })
    pds.clock.advance({ days: 8 })
    const scope = 'atproto transition:generic'
    const app = new OAuthClient(pds, loopbackClientId(scope))
    const url = new URL(app.authorizeUrl(await app.requestUri({ scope })))
    const shown = await browser.open(url.pathname + url.search)
    expect(shown.body).toContain('Approve it in your wallet')
    const form_token = /name="form_token" value="([^"]+)"/.exec(shown.body)![1]!
    const fields = {
      ...Object.fromEntries(url.searchParams),
      account: alice.did,
      action: 'approve',
      form_token,
      password: 'anything',
    }
    const answer = await browser.send(url.pathname + url.search, fields)
    expect([answer.status, answer.headers.get('location')]).toEqual([200, null])
    expect(answer.body).toContain('This account has no password')
  })

  test('of somebody else is not told of: the page of a stranger asks for a password', async () => {
    const { body } = await browser.open(`/account/sign-in?identifier=${alice.handle}`)
    expect(body).toContain('type="password"')
    expect(body).not.toContain('Sign in again')
  })
})

test('an address begins so many sign-ins and no more, and a browser elsewhere is not held up', async () => {
  await using strict = await startPds(
    { rateLimit: { oauthConsentCreatePer5min: 2 } },
    { alone: 'each node may let one more through' },
  )
  const from = (address: string) =>
    new CookieBrowser(strict).send('/account/sign-in/wallet', {}, { 'x-forwarded-for': address })
  const statuses = []
  for (const address of ['192.0.2.1', '192.0.2.1', '192.0.2.1', '198.51.100.1'])
    statuses.push((await from(address)).status)
  expect(statuses).toEqual([303, 303, 429, 303])
})
