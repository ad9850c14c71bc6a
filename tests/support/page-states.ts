/** Every page in each of its states, with the longest names that there are. */
import { beforeAll } from 'bun:test'
import type { Page } from 'playwright-core'
import { Secret } from '../../src/base/secret.ts'
import type { Did } from '../../src/protocol/identifiers.ts'
import { registerAgent as confirmedAgent } from './clients/registered-agent.ts'
import { registerDevices, RELAY } from './clients/queued.ts'
import { invite, ownerCall, share } from './clients/delegate.ts'
import { createAccount, logIn } from './clients/account.ts'
import { ConsoleBrowser } from './clients/console-browser.ts'
import { openAgentClaim, registerAgent } from './clients/agent.ts'
import { FactorHolder } from './clients/factor-holder.ts'
import { OAuthClient } from './clients/oauth-client.ts'
import { PasskeyDevice } from './clients/passkey-device.ts'
import { bearer, request } from './clients/http.ts'
import { decisionOf, sendDecision, latch } from './clients/wallet-consent.ts'
import { CookieBrowser } from './clients/wallet-sign-in.ts'
import { sovereignAccount, walletSession } from './clients/wallet.ts'
import { ADMIN_TOKEN } from './servers/config.ts'
import { png, Uploader } from './clients/uploader.ts'
import { setUp } from './set-up.ts'
import { giveRole } from './clients/role-holder.ts'
import { unfold } from './page-checks.ts'
import { useWorldOnFile } from './file-world.ts'

/** A handle of 253 characters, in labels of 63. */
const LONG_HANDLE = `${'a'.repeat(63)}.${'b'.repeat(63)}.${'c'.repeat(63)}.${'d'.repeat(57)}.com`
const LONG_DOMAIN = `${'people-of-the-federated-network'.repeat(2)}.${'community'.repeat(6)}.test`
const LONG_NAME = 'Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft'
const APP_HOST = `${'app'.repeat(21)}.web.test`
const PROVIDER = {
  issuer: `https://${'identity-provider'.repeat(5)}.example`,
  audience: null,
  algorithm: 'ES256' as const,
  keys: { source: 'jwks' as const, url: 'https://idp.example/jwks' },
}
const LONG_COLLECTION = `com.${'verylonglabel'.repeat(4)}.${'anotherlonglabel'.repeat(3)}.${'record'.repeat(8)}`
export const SCOPES = [
  'atproto',
  'transition:generic',
  'transition:email',
  'transition:chat.bsky',
  'identity:handle',
  'account:email?action=manage',
  'blob:*/*',
  ...['post', 'like', 'repost', 'threadgate', 'postgate', 'generator'].map((kind) => `repo:app.bsky.feed.${kind}`),
  `repo:${LONG_COLLECTION}`,
  ...['getTimeline', 'getAuthorFeed', 'getPostThread'].map(
    (method) => `rpc:app.bsky.feed.${method}?aud=did:web:${'service'.repeat(8)}.example%23bsky_appview`,
  ),
]

const config = {
  rateLimit: { enabled: false },
  agentAuth: { anonymousEnabled: true, grantedScopes: SCOPES, trustedIssuers: [PROVIDER] },
  serviceName: LONG_NAME,
  availableUserDomains: ['test', LONG_DOMAIN],
  inviteCodeRequired: false,
  waitlist: { enabled: true },
  accounts: { passwordOptional: true },
  signingKeyMasterKey: new Secret(new Uint8Array(32).fill(7)),
  notifications: { relay: RELAY },
}

/** Pages that have their texts in tables, and can be reloaded in another language. */
export const IN_ALL_LANGUAGES = [
  'landing',
  'backup-move',
  'move-here',
  'move-away',
  'missing',
  'sign-in',
  'sign-up',
  'reset',
  'code',
  'appeal',
  'request-gone',
  'consent',
  'consent-wallet',
  'consent-chooser',
  'account',
  'account-agents',
  'agent-record',
  'factors',
  'identity',
  'network',
  'own-domain',
  'sharing',
  'activity',
  'data',
  'data-records',
  'data-record',
  'data-files',
  'data-versions',
  'agent-code',
  'agent-code-refused',
  'agent-decision',
  'console-sign-in',
  'console',
  'console-accounts',
  'console-account',
  'console-data',
  'console-cases',
  'console-case',
  'console-sign-ups',
  'console-invites',
  'console-waitlist',
  'console-work',
  'console-network',
  'console-configuration',
  'console-agents',
  'console-pushes',
  'console-requests',
  'console-audit',
  'console-operators',
]

/** Opens a page, which has no scripts. */
export type OpenPage = (page: Page) => Promise<unknown>

/** Starts a server for the tests of a file. Returns what opens each page in it. */
export function usePageStates() {
  const { pds, dns, web, freshPage } = useWorldOnFile({
    web: [APP_HOST],
    browser: true,
    config: {
      ...config,
      links: {
        termsOfService: `https://example.com/${'terms'.repeat(30)}`,
        privacyPolicy: 'https://example.com/privacy',
      },
    },
  })
  const alice = setUp(() =>
    createAccount(pds, 'alice', { email: `${'a'.repeat(60)}@${'mail'.repeat(15)}.example.com` }),
  )
  /** Has records and files with the longest names. */
  const dana = setUp(() => createAccount(pds, 'd'.repeat(18)))
  /** Has no password. */
  const quinn = setUp(() =>
    sovereignAccount(pds, 'q'.repeat(60), {
      password: undefined,
      email: `${'q'.repeat(60)}@${'mail'.repeat(15)}.example.com`,
    }),
  )
  /** Has an authenticator app. */
  const fritz = setUp(async () => {
    const holder = new FactorHolder(pds, await createAccount(pds, `fritz${'x'.repeat(50)}`))
    await holder.signIn()
    await holder.addApp()
    return holder
  })
  /** Has passkeys with the longest names. */
  const hannah = setUp(async () => {
    const holder = new FactorHolder(pds, await createAccount(pds, `hannah${'x'.repeat(50)}`))
    await holder.signIn()
    await holder.addPasskey(undefined, { name: LONG_NAME })
    await holder.addPasskey(new PasskeyDevice(pds.url, false), {
      name: 'x'.repeat(60),
      code: holder.recoveryCodes.pop()!,
    })
    return holder
  })
  beforeAll(async () => {
    dns.setHandle(LONG_HANDLE, alice.did)
    const changed = await alice.call('com.atproto.identity.updateHandle', { json: { handle: LONG_HANDLE } })
    if (changed.status !== 200) throw new Error(JSON.stringify(changed.body))
    for (const name of ['short', 'x'.repeat(255)])
      await alice.call('com.atproto.server.createAppPassword', { json: { name, privileged: true } })
    for (let i = 0; i < 25; i++)
      await dana.call('com.atproto.repo.putRecord', {
        json: {
          repo: dana.did,
          collection: LONG_COLLECTION,
          rkey: `${'k'.repeat(400)}${i}`,
          record: { $type: LONG_COLLECTION, title: LONG_NAME.repeat(5), of: [LONG_HANDLE, 1, null] },
          validate: false,
        },
      })
    // A collection with an everyday name.
    await dana.call('com.atproto.repo.createRecord', {
      json: {
        repo: dana.did,
        collection: 'app.bsky.feed.post',
        record: { $type: 'app.bsky.feed.post', text: 'Hello', createdAt: '2026-01-01T00:00:00.000Z' },
      },
    })
    const uploader = Uploader.at(pds, dana.did as Did, dana.accessJwt)
    await uploader.refer(`com.example.album/${'k'.repeat(400)}`, await uploader.upload(png, 'image/png'))
    web.publish(APP_HOST, '/client.json', () =>
      Response.json({
        client_id: client().clientId,
        client_name: LONG_NAME,
        redirect_uris: [client().redirectUri],
        grant_types: ['authorization_code', 'refresh_token'],
        scope: SCOPES.join(' '),
        token_endpoint_auth_method: 'none',
        dpop_bound_access_tokens: true,
      }),
    )
    await client().signIn({ identifier: alice.did, password: alice.password }, { scope: SCOPES.join(' ') })
  })

  const client = () => new OAuthClient(pds, `https://${APP_HOST}/client.json`, null, `https://${APP_HOST}/callback`)

  async function openRequest(page: Page): Promise<void> {
    const app = client()
    await page.goto(app.authorizeUrl(await app.requestUri({ scope: SCOPES.join(' '), login_hint: LONG_HANDLE })))
  }

  async function enterPassword(page: Page, { did, password }: { did: string; password: string }): Promise<void> {
    await page.goto(`${pds.url}/account/sign-in`)
    await page.getByLabel('Handle or email address').fill(did)
    await page.getByLabel('Password', { exact: true }).fill(password)
    await page.getByRole('button', { name: 'Sign in' }).click()
  }

  /** Presses a button of the page of factors, and enters the password. */
  async function changeFactors(page: Page, button: string, { password }: { password: string }): Promise<void> {
    await page.goto(`${pds.url}/account/factors`)
    await page.getByRole('button', { name: button }).click()
    await page.getByLabel('Password', { exact: true }).fill(password)
    await page.locator('button.primary').click()
  }

  /** Ends the sign-ins of the tests before, which pages would all list. */
  async function signIn(page: Page, { did, password } = alice): Promise<void> {
    await pds.lose('oauth_device_account', { did })
    const browser = new CookieBrowser(pds, await page.evaluate(() => navigator.userAgent))
    await browser.send('/account/sign-in', { identifier: did, password })
    await page.context().addCookies([...browser.cookies].map(([name, value]) => ({ name, value, url: pds.url })))
    await page.goto(`${pds.url}/account`)
  }

  /** Accounts with long names that act for Alice's or are invited to, and the other way round. Made once. */
  let shared: Promise<void> | null = null
  const sharedAccounts = (): Promise<void> => (shared ??= shareAccounts())
  async function shareAccounts(): Promise<void> {
    const session = await logIn(pds, { handle: alice.did, email: alice.email }, alice.password)
    const others = await Promise.all(['d', 'e', 'f'].map((letter) => createAccount(pds, letter.repeat(60))))
    const terms = { presets: ['post', 'read', 'upload-images'], expiresAt: '2099-12-31T00:00:00.000Z' }
    for (const other of others) {
      await share(pds, session, other, terms)
      await share(pds, other, session, terms)
    }
    await ownerCall(
      pds,
      session,
      `delegates/${(await ownerCall(pds, session, 'delegates')).body.delegates[0].id}/end`,
      {},
    )
    const last = await createAccount(pds, 'g'.repeat(60))
    await invite(pds, session, last)
    await invite(pds, last, session)
  }

  /** An agent with everything that takes space, which has written. */
  async function actingAgent() {
    const agent = await confirmedAgent(pds, alice, {
      type: 'identity_assertion',
      scopes: SCOPES,
      issuer: PROVIDER.issuer,
      subject: `${crypto.randomUUID()}${'subject'.repeat(20)}`,
    })
    const collection = `com.${'verylonglabel'.repeat(4)}.${'record'.repeat(8)}`
    const json = { repo: alice.did, collection, record: { $type: collection }, validate: false }
    const written = await agent.call('com.atproto.repo.createRecord', { json })
    if (written.status !== 200) throw new Error(JSON.stringify(written.body))
    return agent
  }

  /** As the script of a page does. */
  const showPasskeyParts = (page: Page) =>
    page.evaluate('document.querySelectorAll("[data-passkey]").forEach((one) => { one.hidden = false })')

  const pages: Record<string, OpenPage> = {
    landing: (page) => page.goto(pds.url),
    missing: (page) => page.goto(`${pds.url}/${'no-such-page'.repeat(20)}`),
    'sign-in': (page) => page.goto(`${pds.url}/account/sign-in?done=reset`),
    async 'sign-in-refused'(page) {
      await page.goto(`${pds.url}/account/sign-in`)
      await page.getByLabel('Handle or email address').fill(LONG_HANDLE)
      await page.getByLabel('Password', { exact: true }).fill('not it')
      await page.getByRole('button', { name: 'Sign in' }).click()
    },
    async 'sign-in-wallet'(page) {
      await page.goto(`${pds.url}/account/sign-in`)
      await page.getByRole('button', { name: 'Use your wallet instead' }).click()
      await page.locator('#match-code').waitFor()
      await page.getByRole('button', { name: 'Continue to your account' }).click()
      await page.getByRole('alert').waitFor()
    },
    'sign-up': (page) => page.goto(`${pds.url}/account/sign-up`),
    async 'sign-up-refused'(page) {
      await page.goto(`${pds.url}/account/sign-up`)
      await page.getByLabel('Handle', { exact: true }).fill('-'.repeat(80))
      await page.getByLabel('Email address').fill('somebody@example.com')
      await page.getByLabel('Password', { exact: true }).fill('a long password')
      await page.getByRole('button', { name: 'Create account' }).click()
    },
    'move-here': (page) => page.goto(`${pds.url}/account/move-here`),
    'backup-move': (page) => page.goto(`${pds.url}/account/move-here/backup`),
    async 'backup-move-refused'(page) {
      await page.goto(`${pds.url}/account/move-here/backup`)
      await page.getByLabel('DID of your account').fill(LONG_HANDLE)
      await page.getByLabel('Handle here').fill(LONG_HANDLE)
      await page.getByLabel('Your public key').fill(`did:key:z${'a'.repeat(150)}`)
      await page.getByRole('button', { name: 'Show me what changes' }).click()
      await page.getByRole('alert').waitFor()
    },
    async 'move-away'(page) {
      await signIn(page)
      await page.goto(`${pds.url}/account/move-away`)
    },
    async restore(page) {
      await signIn(page)
      await page.goto(`${pds.url}/account/archive/import`)
    },
    reset: (page) => page.goto(`${pds.url}/account/reset-password`),
    code: (page) => page.goto(`${pds.url}/account/reset-password/code?sent=yes`),
    'request-gone': (page) => page.goto(`${pds.url}/oauth/authorize`),
    consent: openRequest,
    async 'consent-wallet'(page) {
      const app = client()
      await page.goto(app.authorizeUrl(await app.requestUri({ scope: SCOPES.join(' ') })))
      const requestId = (await page.locator('[data-request-id]').getAttribute('data-request-id'))!
      await latch(pds, requestId, '07')
      await page.reload()
      await page.locator('#match-code').waitFor()
    },
    async 'consent-chooser'(page) {
      await signIn(page)
      await openRequest(page)
      await unfold(page)
    },
    async account(page) {
      await signIn(page)
      await unfold(page)
    },
    async 'account-wallet'(page) {
      const app = client()
      await request(app.authorizeUrl(await app.requestUri({ scope: SCOPES.join(' '), login_hint: quinn.did })), {
        headers: {
          referer: `https://${LONG_DOMAIN}/`,
          'user-agent': 'Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0',
        },
      })
      const wallet = await walletSession(pds, quinn.did)
      const { body } = await request(`${pds.url}/v1/transfer/initiate`, { method: 'POST', headers: bearer(wallet) })
      const device = { devicePublicKey: 'z', platform: 'ios' }
      await request(`${pds.url}/v1/transfer/accept`, { json: { transferCode: body.transferCode, ...device } })
      await page.goto(`${pds.url}/account/sign-in`)
      await page.getByRole('button', { name: 'Use your wallet instead' }).click()
      const requestId = (await page.locator('[data-request-id]').getAttribute('data-request-id'))!
      const matchCode = await page.locator('#match-code').innerText()
      const choice = { grantedScope: 'atproto', matchCode }
      await sendDecision(pds, decisionOf(pds, quinn, { requestId, clientId: pds.url }, choice))
      await page.getByRole('button', { name: 'Continue to your account' }).click()
      await page.locator('#wallet').waitFor()
      await unfold(page)
    },
    async 'sign-in-again'(page) {
      const old = new CookieBrowser(pds, await page.evaluate(() => navigator.userAgent))
      const begun = await old.begin()
      await sendDecision(pds, decisionOf(pds, quinn, begun, { grantedScope: 'atproto', matchCode: begun.matchCode! }))
      await old.send('/account/sign-in/wallet/complete', { request_id: begun.requestId, remember: 'yes' })
      pds.clock.advance({ days: 8 })
      await page.context().addCookies([{ name: 'holdfast', value: old.cookies.get('holdfast')!, url: pds.url }])
      await page.goto(`${pds.url}/account`)
      await page.getByRole('heading', { name: 'Sign in again' }).waitFor()
    },
    async 'own-domain'(page) {
      await signIn(page)
      await page.goto(`${pds.url}/account/handle/domain?handle=${LONG_HANDLE.replace('aaa', 'eee')}`)
      await page.getByRole('button', { name: 'Check and change my handle' }).click()
      if ((await page.getByRole('status').count()) !== 1) throw new Error('nothing was found out')
    },
    recovery: (page) => page.goto(`${pds.url}/account/recovery`),
    async 'recovery-refused'(page) {
      await page.goto(`${pds.url}/account/recovery/share?sent=yes`)
      await page.getByLabel('Handle or DID').fill(LONG_HANDLE)
      await page.getByRole('button', { name: 'Continue' }).click()
    },
    async 'second-factor'(page) {
      await enterPassword(page, fritz.account)
      await page.getByLabel('Code', { exact: true }).fill('000000')
      await page.getByRole('button', { name: 'Continue' }).click()
      await page.getByRole('alert').waitFor()
    },
    async factors(page) {
      await signIn(page)
      await page.goto(`${pds.url}/account/factors`)
      await page.getByRole('heading', { name: 'Code by email' }).waitFor()
    },
    async 'factors-with-app'(page) {
      await enterPassword(page, fritz.account)
      await page.getByLabel('Code', { exact: true }).fill(fritz.nextCode())
      await page.getByRole('button', { name: 'Continue' }).click()
      await page.goto(`${pds.url}/account/factors`)
      await page.getByRole('heading', { name: 'Recovery codes' }).waitFor()
    },
    async 'factors-password'(page) {
      await signIn(page)
      await page.goto(`${pds.url}/account/factors`)
      await page.getByRole('button', { name: 'Set up an authenticator app' }).click()
      await page.getByLabel('Password', { exact: true }).waitFor()
    },
    async 'factors-app'(page) {
      await signIn(page)
      await changeFactors(page, 'Set up an authenticator app', alice)
      await page.getByLabel('Code that the app shows').waitFor()
    },
    async 'factors-with-passkeys'(page) {
      await enterPassword(page, hannah.account)
      await page.getByLabel('Code', { exact: true }).fill(hannah.recoveryCodes.pop()!)
      await page.locator('button.primary').click()
      await page.waitForURL(`${pds.url}/account`)
      await page.goto(`${pds.url}/account/factors`)
      await unfold(page)
    },
    async 'factors-passkey'(page) {
      await signIn(page)
      await changeFactors(page, 'Add a passkey', alice)
      await showPasskeyParts(page)
    },
    async 'second-step-passkey'(page) {
      await enterPassword(page, hannah.account)
      await showPasskeyParts(page)
    },
    async 'factors-codes'(page) {
      await enterPassword(page, fritz.account)
      await page.getByLabel('Code', { exact: true }).fill(fritz.nextCode())
      await page.getByRole('button', { name: 'Continue' }).click()
      await changeFactors(page, 'Make new recovery codes', fritz.account)
      await page.getByLabel('Code', { exact: true }).fill(fritz.nextCode())
      await page.getByRole('button', { name: 'Continue' }).click()
      await page.getByRole('heading', { name: 'Your recovery codes' }).waitFor()
    },
    async identity(page) {
      await signIn(page)
      await page.goto(`${pds.url}/account/identity`)
      await page.getByRole('heading', { name: 'Keys that control it' }).waitFor()
    },
    async data(page) {
      await signIn(page, dana)
      await page.goto(`${pds.url}/account/data`)
      await page.getByRole('heading', { name: 'Data of the account' }).waitFor()
    },
    async 'data-records'(page) {
      await signIn(page, dana)
      await page.goto(`${pds.url}/account/data?part=records&collection=${LONG_COLLECTION}`)
      await page.getByRole('link', { name: 'More' }).waitFor()
    },
    async 'data-record'(page) {
      await signIn(page, dana)
      await page.goto(`${pds.url}/account/data?part=record&path=${LONG_COLLECTION}/${'k'.repeat(400)}0`)
      await page.getByRole('heading', { name: 'As JSON' }).waitFor()
    },
    async 'data-files'(page) {
      await signIn(page, dana)
      await page.goto(`${pds.url}/account/data?part=blobs`)
      await page.getByRole('heading', { name: 'Images, videos and other files' }).waitFor()
    },
    async 'data-versions'(page) {
      await signIn(page, dana)
      await page.goto(`${pds.url}/account/data?part=commits`)
      await page.getByRole('heading', { name: 'Versions' }).waitFor()
    },
    async activity(page) {
      await signIn(page)
      await page.goto(`${pds.url}/account/activity`)
      await page.getByRole('heading', { name: 'Activity of your account' }).waitFor()
    },
    async sharing(page) {
      await sharedAccounts()
      await signIn(page)
      await page.goto(`${pds.url}/account/sharing`)
      await page.getByRole('heading', { name: 'Accounts that you act for' }).waitFor()
      await unfold(page)
    },
    async 'sharing-refused'(page) {
      await signIn(page)
      await page.goto(`${pds.url}/account/sharing`)
      await page.getByText('Invite someone').click()
      await page.getByLabel('Handle of the other account').fill(LONG_HANDLE)
      await page.getByRole('button', { name: 'Invite', exact: true }).click()
      await page.getByRole('alert').waitFor()
    },
    async 'sharing-record'(page) {
      await sharedAccounts()
      await signIn(page)
      await page.goto(`${pds.url}/account/sharing/record`)
      await page.getByRole('link', { name: 'Back to shared accounts' }).waitFor()
    },
    async 'consent-as-delegate'(page) {
      await sharedAccounts()
      await signIn(page)
      await openRequest(page)
      await page.getByText(/^as @/).first().waitFor()
      await unfold(page)
    },
    async network(page) {
      await signIn(page)
      await page.goto(`${pds.url}/account/network`)
      await page.getByRole('heading', { name: 'How the network sees you' }).waitFor()
    },
    async deactivated(page) {
      const sleeper = await createAccount(pds, 'sleeper')
      await sleeper.call('com.atproto.server.deactivateAccount', {
        json: { deleteAfter: new Date(pds.clock.now() + 86_400_000).toISOString() },
      })
      await page.goto(`${pds.url}/account/sign-in`)
      await page.getByLabel('Handle or email address').fill(sleeper.handle)
      await page.getByLabel('Password', { exact: true }).fill(sleeper.password)
      await page.getByRole('button', { name: 'Sign in' }).click()
      await page.getByRole('link', { name: 'Confirm it' }).click()
    },
    'agent-code': (page) => page.goto(`${pds.url}/agent/claim?code=042917`),
    async 'agent-code-refused'(page) {
      await signIn(page)
      await page.goto(`${pds.url}/agent/claim`)
      await page.getByLabel('Code that the program shows').fill('000 000')
      await page.getByRole('button', { name: 'Continue' }).click()
    },
    async 'agent-decision'(page) {
      const { body } = await registerAgent(pds, { type: 'anonymous' })
      const { body: opened } = await openAgentClaim(pds, body.claim_token)
      await signIn(page)
      await page.goto(`${pds.url}/agent/claim?code=${opened.claim_attempt.user_code}`)
      await page.getByRole('button', { name: 'Continue' }).click()
      await page.getByRole('heading', { name: 'Let this program act for you?' }).waitFor()
      await unfold(page)
    },
    async 'account-agents'(page) {
      await actingAgent()
      await signIn(page)
      await page.locator('#agents').waitFor()
      await unfold(page)
    },
    async 'account-pushes'(page) {
      // The clock was advanced beyond the life of the first session.
      const session = await logIn(pds, { handle: alice.did, email: alice.email }, alice.password)
      await registerDevices(
        pds,
        session,
        [crypto.randomUUID(), 'device'.repeat(21)],
        `org.${'example'.repeat(10)}.wallet`,
      )
      await signIn(page)
      await page.locator('#pushes').waitFor()
      await unfold(page)
    },
    async 'agent-record'(page) {
      const { id } = await actingAgent()
      await signIn(page)
      await page.goto(`${pds.url}/account/agents/record?id=${id}`)
      await page.getByRole('link', { name: 'Back to your account' }).waitFor()
    },
    async 'own-key-made'(page) {
      await signIn(page)
      await page.goto(`${pds.url}/account/identity`)
      await page.getByRole('button', { name: 'Make a key for me' }).click()
      await page.locator('.secret').waitFor()
    },
    async 'app-password-made'(page) {
      await signIn(page)
      await page.getByText('New app password').click()
      await page.getByLabel('Name', { exact: true }).fill(`${page.viewportSize()!.width}-${'y'.repeat(200)}`)
      await page.getByRole('checkbox', { name: 'Read what you see in apps' }).check()
      await page.getByLabel('Further scopes').fill(`repo:${'a.'.repeat(60)}b`)
      await page.getByLabel('Last day').fill('2099-12-31')
      await page.getByRole('button', { name: 'Create app password' }).click()
      await page.locator('.secret').waitFor()
      await unfold(page)
    },
    async 'confirm-password'(page) {
      await signIn(page)
      pds.clock.advance({ secs: 2 * 3600 })
      await page.getByText('New app password').click()
      await page.getByLabel('Name', { exact: true }).fill('x')
      await page.getByRole('button', { name: 'Create app password' }).click()
      await page.getByRole('heading', { name: 'Confirm that it is you' }).waitFor()
    },
    async 'console-sign-in'(page) {
      await page.goto(`${pds.url}/admin/sign-in`)
      await page.getByLabel('Handle or email address').fill(LONG_HANDLE)
      await page.getByLabel('Password', { exact: true }).fill('not it')
      await page.getByRole('button', { name: 'Sign in' }).click()
    },
    console: (page) => operate(page, '/admin'),
    'console-accounts': (page) => operate(page, `/admin/accounts?q=${'a'.repeat(60)}`),
    'console-account': (page) => operate(page, `/admin/account?did=${alice.did}`),
    'console-data': (page) => operate(page, `/admin/data?did=${dana.did}`),
    async 'console-cases'(page) {
      await warnedCase()
      await operate(page, '/admin/cases?state=all')
    },
    async 'console-case'(page) {
      const { id } = await warnedCase({ isAppealed: true })
      await operate(page, `/admin/case?id=${id}`)
    },
    async appeal(page) {
      const { code } = await warnedCase()
      await page.goto(`${pds.url}/account/appeal?code=${code}`)
      await page.getByLabel('Why is this wrong?').fill('x'.repeat(200))
    },
    'console-sign-ups': (page) => operate(page, '/admin/sign-ups'),
    'console-invites': (page) => operate(page, '/admin/invites'),
    async 'console-waitlist'(page) {
      await request(`${pds.url}/waitlist`, { json: { email: `${'w'.repeat(60)}@${'mail'.repeat(15)}.example.com` } })
      await operate(page, '/admin/waitlist')
    },
    'console-work': (page) => operate(page, '/admin/work'),
    'console-network': (page) => operate(page, '/admin/network'),
    'console-configuration': (page) => operate(page, '/admin/configuration?section=general'),
    'console-agents': (page) => operate(page, '/admin/agents'),
    'console-pushes': (page) => operate(page, '/admin/pushes'),
    async 'console-requests'(page) {
      await request(`${pds.url}/xrpc/com.atproto.server.getSession`)
      await operate(page, '/admin/requests')
    },
    'console-audit': (page) => operate(page, '/admin/audit?subject='),
    'console-operators': (page) => operate(page, '/admin/operators'),
    async 'console-password'(page) {
      await operate(page, `/admin/account?did=${alice.did}`)
      pds.clock.advance({ secs: 11 * 60 })
      const form = page.locator('form', { hasText: 'Show a reset code' })
      await form.getByLabel('Reason, for the audit log').fill('x'.repeat(200))
      await form.getByRole('button').click()
      await page.getByRole('heading', { name: 'Enter your password again' }).waitFor()
    },
  }

  /** A case about alice with the longest words, which is decided. */
  async function warnedCase({ isAppealed = false } = {}): Promise<{ id: number; code: string }> {
    const long = 'z'.repeat(300)
    const post = async (path: string, json: object) =>
      (await request(`${pds.url}/v1/admin/cases${path}`, { json, headers: bearer(ADMIN_TOKEN) })).body
    const { id } = await post('', { subject: alice.did, reason: long })
    await post(`/${id}/notes`, { text: long })
    await post(`/${id}/decision`, { act: 'warn', reason: long })
    await pds.runSteps()
    const [, code = ''] = /appeal\?code=([\w-]+)/.exec(pds.mails.findLast(({ to }) => to === alice.email)!.text)!
    if (isAppealed) await request(`${pds.url}/v1/decisions/appeal`, { json: { code, text: long } })
    return { id, code }
  }

  /** At the console, where the longest names are those that strangers chose. */
  async function operate(page: Page, path: string): Promise<void> {
    await giveRole(pds, alice.did, 'owner')
    const desk = new ConsoleBrowser(pds, await page.evaluate(() => navigator.userAgent))
    await desk.signIn(alice.did)
    const [name = '', value = ''] = desk.cookie.split('=')
    await page
      .context()
      .addCookies([{ name, value, domain: new URL(pds.url).hostname, path: '/admin', sameSite: 'Strict' }])
    await page.goto(`${pds.url}${path}`)
    await unfold(page)
  }
  return { pds, freshPage, openRequest, pages }
}
