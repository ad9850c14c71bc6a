/**
 * Signing in to pages of this server with a wallet. The server is its own client: it pushes a request to itself, which
 * waits for a wallet like that of an app, and the approval signs a browser in.
 *
 * The consent contains the hash of a secret in a cookie of the browser that asked for it, so one browser cannot sign in
 * another. Such a consent never becomes an authorization code, because only consents without a browser do; and the
 * consent of an app, which has no browser, never signs a browser in.
 */
import { randomBytes } from 'node:crypto'
import type { Exchange } from '../../../http/endpoint.ts'
import type { Config } from '../../../platform/configuration/config.ts'
import type { Context } from '../../../platform/context.ts'
import type { Tx } from '../../../platform/database/database.ts'
import { newToken } from '../../../platform/secrets/new-token.ts'
import type { AuthorizationRequest } from '../../../protocol/authorization-request.ts'
import type { ClientMetadata } from '../../../protocol/client-metadata.ts'
import { parseDid, parseHandle, type Did } from '../../../protocol/identifiers.ts'
import { BASE_SCOPE } from '../../../protocol/scopes.ts'
import { twoDigits } from '../../../protocol/short-code.ts'
import { accountStatus } from '../../identity/accounts/accounts.ts'
import { pageRefusal } from '../page-parts/page-parts.ts'
import { REQUEST_TTL_SECS } from './authorization-requests.ts'
import { insertRequest, takeRequest, type PendingRequest } from './authorization-request-store.ts'
import { insertConsentEvent } from './wallet-consent-event-store.ts'
import { completeConsentIn, findOpenConsentIn, type BrowserConsent, type Consent } from './wallet-consent-store.ts'
import { newConsent, shownStatus, storeConsent } from './wallet-consents.ts'
import { unfinished } from './wallet-decisions.ts'

/**
 * The client that wallets show as the app. No other client can have this id, because the ids of clients have a path.
 */
const ownClient = ({ publicUrl, serviceName }: Config): ClientMetadata => ({
  clientId: publicUrl,
  name: `Account page of ${serviceName}`,
  policyUri: null,
  tosUri: null,
  redirectUris: [`${publicUrl}/account`],
  scopes: [BASE_SCOPE],
  mayRefresh: false,
  applicationType: 'web',
  authentication: { method: 'none' },
})

/** Returns the request that the server pushes to itself. Its URI and the verifier of its challenge are secret. */
function ownRequest(config: Config, loginHint: string | null): PendingRequest {
  const client = ownClient(config)
  const request: AuthorizationRequest = {
    clientId: client.clientId,
    redirectUri: client.redirectUris[0]!,
    responseMode: 'query',
    codeChallenge: newToken().hash,
    scopes: client.scopes,
    state: null,
    loginHint,
    prompt: null,
    dpopJkt: null,
  }
  return { request, client, clientKey: null }
}

/**
 * Ask for the sign-in of a browser. Returns the id of the consent. `name` is the account that signs in, if it is known;
 * then only its wallet can approve the sign-in.
 *
 * The wallet always asks for the number on the page, so that holders cannot approve another person's sign-in by
 * mistake.
 */
export async function beginBrowserSignIn(exchange: Exchange, browserHash: string, name: string): Promise<string> {
  const { ctx } = exchange
  const loginHint = parseDid(name) ?? parseHandle(name.toLowerCase())
  const pending = ownRequest(ctx.config, loginHint)
  const { hash: requestHash } = newToken()
  const asked = {
    requestHash,
    clientId: pending.client.clientId,
    loginHint,
    requestedScopes: pending.request.scopes,
    expiresAt: ctx.clock.now() + REQUEST_TTL_SECS * 1000,
  }
  const consent = { ...newConsent(exchange, asked), matchCode: twoDigits(randomBytes), browserHash }
  await ctx.db.transaction(async (tx) => {
    if (!(await storeConsent(tx, consent))) throw pageRefusal('This did not work. Please try again.')
    await insertRequest(tx, requestHash, pending, consent.expiresAt)
  })
  return consent.requestId
}

/** Returns a sign-in that waits for a wallet, or for its completion in this browser; null if there is none. */
export const browserSignInOf = ({ db, clock }: Context, wanted: BrowserConsent): Promise<Consent | null> =>
  findOpenConsentIn(db, wanted, clock.now())

/**
 * Complete a sign-in that a wallet has approved. `keep` stores it, in the transaction that spends the approval. Returns
 * the account. Throws `InvalidRequest`, and changes nothing, if the sign-in is not approved, was completed before, was
 * begun in another browser, or if the account is no longer active.
 */
export async function completeBrowserSignIn(
  { ctx }: Exchange,
  wanted: BrowserConsent,
  keep: (tx: Tx, did: Did) => Promise<void>,
): Promise<Did> {
  const status = await shownStatus(ctx, wanted.requestId)
  if (status !== 'approved') throw pageRefusal(unfinished[status])
  return ctx.db.transaction(async (tx) => {
    const now = ctx.clock.now()
    const approved = await completeConsentIn(tx, wanted)
    const isOpen = approved !== null && (await takeRequest(tx, approved.requestHash, now)) !== null
    if (!isOpen || (await accountStatus(tx, approved.did)) !== 'active') throw pageRefusal(unfinished.expired)
    const { did, requestHash, clientId } = approved
    await keep(tx, did)
    await insertConsentEvent(tx, {
      requestHash,
      action: 'completed',
      accountDid: did,
      clientId,
      detail: {},
      createdAt: now,
    })
    return did
  })
}
