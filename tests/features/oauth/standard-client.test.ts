/**
 * The network's own client, as it comes out of its package: public on this machine, and confidential with a published
 * key.
 */
import { expect, test } from 'bun:test'
import { JoseKey } from '@atproto/oauth-client-node'
import { createAccount, type TestAccount } from '../../support/clients/account.ts'
import { request } from '../../support/clients/http.ts'
import { hiddenFields } from '../../support/clients/oauth-client.ts'
import { loopbackClient, type StandardClient, standardClient } from '../../support/clients/standard-client.ts'
import {
  completeConsent,
  decisionOf,
  previewOf,
  sendDecision,
  walletPathOf,
} from '../../support/clients/wallet-consent.ts'
import { sovereignAccount } from '../../support/clients/wallet.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'
import { atOneNode } from '../../support/turns.ts'
import { thrownBy } from '../../support/thrown.ts'

const { pds, web } = useWorld({ web: ['app.web.test'], config: { accounts: { passwordOptional: true } } })
const alice = setUp(() => createAccount(pds, 'alice'))
const sovereign = setUp(() => sovereignAccount(pds, 'sovereign', { password: undefined }))

/** What a person does with the page: read it, fill it in, and follow where it leads. */
async function consent(url: URL): Promise<URLSearchParams> {
  const { body } = await request(url.href)
  const form = new URLSearchParams({
    ...hiddenFields(body),
    identifier: alice.handle,
    password: alice.password,
    action: 'approve',
    granted_scope: 'transition:generic',
  })
  const answer = await request(`${pds.url}/oauth/authorize`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: form.toString(),
  })
  return new URL(answer.headers.get('location')!).searchParams
}

/** What a wallet and a browser without script do with it. */
async function consentByWallet(url: URL): Promise<URLSearchParams> {
  const { requestId } = walletPathOf((await request(url.href)).body)!
  const { clientId, requestedScope } = (await previewOf(pds, { request_id: requestId })).body
  const grantedScope = requestedScope.join(' ')
  expect(await sendDecision(pds, decisionOf(pds, sovereign, { requestId, clientId }, { grantedScope }))).toMatchObject({
    status: 200,
  })
  return new URL((await completeConsent(pds, requestId)).headers.get('location')!).searchParams
}

async function wholeWay(
  { client, sessions }: StandardClient,
  account: TestAccount = alice,
  agree: (url: URL) => Promise<URLSearchParams> = consent,
): Promise<void> {
  const url = await client.authorize(account.handle, { scope: 'atproto transition:generic', state: 'mine' })
  const { session, state } = await client.callback(await agree(url))
  expect({ did: session.did as string, state }).toEqual({ did: account.did, state: 'mine' })

  const called = await session.fetchHandler('/xrpc/com.atproto.server.getSession')
  expect(await called.json()).toMatchObject({ did: account.did, handle: account.handle })

  const before = sessions.kept.get(account.did)!.tokenSet.refresh_token
  const again = await client.restore(account.did, true)
  expect(sessions.kept.get(account.did)!.tokenSet.refresh_token).not.toBe(before)
  expect((await again.fetchHandler('/xrpc/com.atproto.server.getSession')).status).toBe(200)

  await again.signOut()
  expect(await thrownBy(client.restore(account.did))).toThrow()
  const ended = await request(`${pds.url}/account`)
  expect(ended.status).toBe(303)
}

test('a public client on this machine', async () => {
  await wholeWay(loopbackClient(pds))
})

test('a public client that a wallet lets in', async () => {
  await wholeWay(loopbackClient(pds), sovereign, consentByWallet)
})

test('a confidential client with a document, keys at an address of their own, and assertions', async () => {
  using _ = atOneNode(pds, 'each node fetches for itself')
  const key = await JoseKey.generate(['ES256'], 'key-one')
  const metadata = {
    client_id: 'https://app.web.test/client-metadata.json' as const,
    client_name: 'A web app',
    client_uri: 'https://app.web.test' as const,
    redirect_uris: ['https://app.web.test/callback'] as [`https://${string}`],
    grant_types: ['authorization_code', 'refresh_token'] as ['authorization_code', 'refresh_token'],
    response_types: ['code'] as ['code'],
    scope: 'atproto transition:generic',
    application_type: 'web' as const,
    token_endpoint_auth_method: 'private_key_jwt' as const,
    token_endpoint_auth_signing_alg: 'ES256',
    jwks_uri: 'https://app.web.test/jwks.json' as const,
    dpop_bound_access_tokens: true as const,
  }
  web.publish('app.web.test', '/client-metadata.json', () => Response.json(metadata))
  web.publish('app.web.test', '/jwks.json', () => Response.json({ keys: [key.publicJwk] }))
  await wholeWay(standardClient(pds, metadata, [key]))
  await wholeWay(standardClient(pds, metadata, [key]), sovereign, consentByWallet)
  expect(web.requests.filter((place) => place.endsWith('/client-metadata.json'))).toHaveLength(1)
  expect(web.requests.filter((place) => place.endsWith('/jwks.json'))).toHaveLength(1)
})
