/** An account in which a program signs in for each of its runs, and never out: what others use stays. */
import { expect, test } from 'bun:test'
import { createAccount, logIn, PASSWORD, xrpc } from '../../support/clients/account.ts'
import { DelegateBrowser, returned } from '../../support/clients/delegate.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { loopbackClientId, OAuthClient } from '../../support/clients/oauth-client.ts'
import { walletSession } from '../../support/clients/wallet.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'

const { pds } = useWorld({ config: { rateLimit: { enabled: false } } })
const alice = setUp(() => createAccount(pds, 'alice'))

/** Ids of rows that are older the higher their number. */
const rows = (count: number) =>
  Array.from({ length: count }, (_, i) => ({ key: `row ${i}`, at: pds.clock.now() - 60_000 - i }))
const later = () => pds.clock.now() + 30 * 24 * 3600 * 1000

test('has 5,000 sessions, of which those end first that were never refreshed', async () => {
  const { did } = alice
  const refreshed = await xrpc(pds, 'com.atproto.server.refreshSession', {
    method: 'POST',
    headers: bearer(alice.refreshJwt),
  })
  await pds.plant(
    'session',
    rows(5000).map(({ key, at }) => ({ id: key, did, current_token: key, expires_at: later(), opened_at: at })),
  )
  pds.clock.advance({ secs: 60 })
  const { accessJwt } = await logIn(pds, alice, PASSWORD)
  for (const token of [refreshed.body.accessJwt, accessJwt])
    expect((await xrpc(pds, 'com.atproto.server.getSession', { headers: bearer(token) })).status).toBe(200)
  expect(await pds.count('session', { did })).toBe(5000)
  expect([await pds.count('session', { id: 'row 4997' }), await pds.count('session', { id: 'row 4998' })]).toEqual([
    1, 0,
  ])
})

test('has 5,000 sessions of apps', async () => {
  const { did } = alice
  await pds.plant(
    'oauth_session',
    rows(5000).map(({ key, at }) => ({
      id: key,
      did,
      client_id: 'https://app.example',
      scope: 'atproto',
      scope_is_fixed: 1,
      jkt: 'key',
      code_hash: key,
      created_at: at,
      refreshed_at: at,
      expires_at: later(),
      idle_expires_at: later(),
    })),
  )
  const browser = await new DelegateBrowser(pds).signIn(alice)
  const app = new OAuthClient(pds, loopbackClientId('atproto'))
  const url = app.authorizeUrl(await app.requestUri({ scope: 'atproto' }))
  const redeemed = await app.redeem(returned(await browser.allow(url, did)).get('code')!)
  expect(redeemed.status).toBe(200)
  expect(await pds.count('oauth_session', { did })).toBe(5000)
  expect(await pds.count('oauth_session', { id: 'row 4999' })).toBe(0)
})

test('is signed in in 1,000 browsers', async () => {
  const { did } = alice
  await pds.plant(
    'oauth_device_account',
    rows(1000).map(({ key, at }) => ({ token_hash: key, did, signed_in_at: at })),
  )
  const browser = await new DelegateBrowser(pds).signIn(alice)
  expect(await browser.signedIn()).toBe(did)
  expect(await pds.count('oauth_device_account', { did })).toBe(1000)
  expect(await pds.count('oauth_device_account', { token_hash: 'row 999' })).toBe(0)
})

test('has 1,000 sessions of wallets', async () => {
  const { did } = alice
  await pds.plant(
    'wallet_session',
    rows(1000).map(({ key, at }) => ({ token_hash: key, did, by_password: 0, expires_at: later(), opened_at: at })),
  )
  const token = await walletSession(pds, did)
  expect((await request(`${pds.url}/v1/app-passwords`, { headers: bearer(token) })).status).toBe(200)
  expect(await pds.count('wallet_session', { did })).toBe(1000)
  expect(await pds.count('wallet_session', { token_hash: 'row 999' })).toBe(0)
})
