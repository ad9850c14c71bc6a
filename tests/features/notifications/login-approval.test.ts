/** Pushes about requests that wait for a wallet: whom they reach, what they say, and what the page shows. */
import { beforeAll, describe, expect, test } from 'bun:test'
import { plainName } from '../../../src/http/html.ts'
import { createAccount, type TestAccount } from '../../support/clients/account.ts'
import { request } from '../../support/clients/http.ts'
import { OAuthClient } from '../../support/clients/oauth-client.ts'
import { MASTER_KEY, startPds, type TestPds } from '../../support/servers/pds.ts'
import { decisionOf, openConsent, previewOf, sendDecision, walletPathOf } from '../../support/clients/wallet-consent.ts'
import { deviceKey, sovereignAccount, type DeviceKey } from '../../support/clients/wallet.ts'
import { queuedPushes, registerDevices, RELAY, type QueuedPush } from '../../support/clients/queued.ts'
import { useWorld } from '../../support/world.ts'

const withPushes = {
  notifications: { relay: RELAY },
  signingKeyMasterKey: MASTER_KEY,
  accounts: { passwordOptional: true },
}

type Holder = TestAccount & { device: DeviceKey }

/** Has two devices. */
let alice: Holder
/** Has none. */
let bob: Holder
const { pds } = useWorld({ plc: true, config: { ...withPushes, rateLimit: { enabled: false } } })
beforeAll(async () => {
  alice = await sovereignAccount(pds, 'alice', { password: undefined })
  bob = await sovereignAccount(pds, 'bob', { password: undefined }, deviceKey('k256'))
  await registerDevices(pds, alice, ['phone', 'tablet'])
})

const queuedAbout = async (requestId: string, at: TestPds = pds) =>
  (await queuedPushes(at)).filter(({ message }) => message.data['requestId'] === requestId)

const dispatched = async (at: TestPds = pds) =>
  (await at.rows('wallet_consent_event', { action: 'push_dispatched' }, ['detail'])).map(
    ({ detail }) => JSON.parse(detail) as unknown,
  )

describe('a page that names an account with devices', () => {
  test('tells each of them once, and shows the number that the wallet asks for', async () => {
    const app = new OAuthClient(pds)
    const consent = await openConsent(
      app,
      { login_hint: alice.handle.toUpperCase() },
      { referer: 'https://app.example.com/start?secret=1' },
    )
    expect(consent.matchCode).toMatch(/^\d\d$/)
    const pushes = await queuedAbout(consent.requestId)
    expect(pushes.map(({ device }) => device)).toEqual([
      { owner: alice.did, deviceId: 'phone' },
      { owner: alice.did, deviceId: 'tablet' },
    ])
    for (const { message, goodUntil } of pushes) {
      expect(message).toEqual({
        type: 'login-approval',
        title: expect.any(String),
        body: expect.any(String),
        data: {
          requestId: consent.requestId,
          did: alice.did,
          clientName: plainName(app.clientId),
          origin: 'https://app.example.com',
        },
      })
      expect(Object.keys(message.data)).toEqual(['requestId', 'did', 'clientName', 'origin'])
      expect(goodUntil - pds.clock.now()).toBeWithin(290_000, 300_001)
    }
    expect((await dispatched()).at(-1)).toEqual({ devices: 2, pushed_to: alice.did })

    // Loading it again shows the same, and tells nobody.
    const again = walletPathOf(String((await request(app.authorizeUrl(consent.requestUri))).body))
    expect(again).toMatchObject({ requestId: consent.requestId, matchCode: consent.matchCode })
    expect(await queuedAbout(consent.requestId)).toHaveLength(2)
  })

  test('says neither the number nor the code nor a text of the app in what devices show', async () => {
    const consent = await openConsent(new OAuthClient(pds), { login_hint: alice.did })
    const [{ message }] = (await queuedAbout(consent.requestId)) as [QueuedPush]
    expect(JSON.stringify(message)).not.toContain(consent.userCode)
    expect(
      JSON.stringify({ ...message, data: { ...message.data, requestId: '', did: '', clientName: '' } }),
    ).not.toContain(consent.matchCode!)
    expect(message.data['origin']).toBeNull()
    expect(message.title + message.body).not.toContain(consent.clientId)
  })

  test('is approved with the number alone', async () => {
    const consent = await openConsent(new OAuthClient(pds), { login_hint: alice.did })
    expect((await previewOf(pds, { request_id: consent.requestId })).body).toMatchObject({ matchRequired: true })
    const wrong = consent.matchCode === '07' ? '08' : '07'
    for (const matchCode of [undefined, wrong])
      expect(await sendDecision(pds, decisionOf(pds, alice, consent, { matchCode }))).toMatchObject({ status: 403 })
    expect(await sendDecision(pds, decisionOf(pds, alice, consent, { matchCode: consent.matchCode! }))).toMatchObject({
      status: 200,
    })
  })

  test('that many load at once tells each device once', async () => {
    const app = new OAuthClient(pds)
    const requestUri = await app.requestUri({ login_hint: alice.did })
    const pages = await Promise.all(Array.from({ length: 8 }, () => request(app.authorizeUrl(requestUri))))
    const shown = pages.map(({ body }) => walletPathOf(String(body))!)
    expect(new Set(shown.map(({ requestId, matchCode }) => `${requestId} ${matchCode}`)).size).toBe(1)
    expect(await queuedAbout(shown[0]!.requestId)).toHaveLength(2)
  })
})

describe('nobody is told', () => {
  const count = async () => (await queuedPushes(pds)).length

  test.each([
    ['of an account without devices', () => bob.did],
    ['of an unknown account', () => 'nobody.test'],
    ['of an account elsewhere', () => 'did:plc:ewvi7nxzyoun6zhxrhs64oiz'],
    ['where nobody is named', () => undefined],
  ])('%s, and no number is asked for', async (_, hint) => {
    const before = await count()
    const consent = await openConsent(new OAuthClient(pds), { login_hint: hint() })
    expect(consent.matchCode).toBeNull()
    expect((await previewOf(pds, { request_id: consent.requestId })).body).toMatchObject({ matchRequired: false })
    expect(await count()).toBe(before)
  })

  test('of an account with a password, which is not asked by its wallet', async () => {
    const carol = await createAccount(pds, 'carol')
    await registerDevices(pds, carol, ['phone'])
    const before = await count()
    const app = new OAuthClient(pds)
    const page = await request(app.authorizeUrl(await app.requestUri({ login_hint: carol.did })))
    expect(walletPathOf(String(page.body))).toBeNull()
    expect(await count()).toBe(before)
  })

  test('of an account that is not active', async () => {
    const dora = await sovereignAccount(pds, 'dora', { password: undefined })
    await registerDevices(pds, dora, ['phone'])
    expect((await dora.call('com.atproto.server.deactivateAccount', { json: {} })).status).toBe(200)
    const before = await count()
    expect((await openConsent(new OAuthClient(pds), { login_hint: dora.did })).matchCode).toBeNull()
    expect(await count()).toBe(before)
  })

  test('if pushes cannot be queued; the page offers the wallet all the same', async () => {
    const restore = await pds.hide('push_registration')
    try {
      expect((await openConsent(new OAuthClient(pds), { login_hint: alice.did })).matchCode).toBeNull()
      expect(
        pds.log.some(({ level, message }) => level === 'error' && message.startsWith('could not queue the push about')),
      ).toBe(true)
    } finally {
      await restore()
    }
    expect((await openConsent(new OAuthClient(pds), { login_hint: alice.did })).matchCode).not.toBeNull()
  })
})

describe('the devices of one account', () => {
  test('are told five times in ten minutes; after that, a request needs no number', async () => {
    await using other = await startPds(withPushes, { alone: 'each node may let one more through' })
    const erin = await sovereignAccount(other, 'erin', { password: undefined })
    const frank = await sovereignAccount(other, 'frank', { password: undefined })
    await registerDevices(other, erin, ['phone'])
    await registerDevices(other, frank, ['phone'])
    const numbers: (string | null)[] = []
    for (let i = 0; i < 7; i++)
      numbers.push((await openConsent(new OAuthClient(other), { login_hint: erin.did })).matchCode)
    expect(numbers.map((number) => number !== null)).toEqual([true, true, true, true, true, false, false])
    expect(await queuedPushes(other)).toHaveLength(5)
    // Others are not affected.
    expect((await openConsent(new OAuthClient(other), { login_hint: frank.did })).matchCode).not.toBeNull()
    other.clock.advance({ secs: 601 })
    await registerDevices(other, erin, ['phone'])
    expect((await openConsent(new OAuthClient(other), { login_hint: erin.did })).matchCode).not.toBeNull()
  })
})

test('without a relay no page asks for a number', async () => {
  await using other = await startPds({ accounts: { passwordOptional: true } })
  const grace = await sovereignAccount(other, 'grace', { password: undefined })
  expect((await openConsent(new OAuthClient(other), { login_hint: grace.did })).matchCode).toBeNull()
  expect(await dispatched(other)).toEqual([])
})
