/**
 * Decisions that wallets make: approval or denial by a signed proof, and the completion that turns an approval into an
 * authorization code once the browser asks for it.
 *
 * A proof is bound to its server, request, client, decision and scopes by its envelope. It needs no nonce: a guarded
 * update takes the consent out of `pending` once, so a proof that is sent again finds nothing to decide.
 */
import { type Static, Type } from '@sinclair/typebox'
import type { Exchange } from '../../../http/endpoint.ts'
import { forbidden, invalidRequest, notFound, Refusal } from '../../../http/errors.ts'
import { requestOrigin } from '../../../http/origin.ts'
import type { Context } from '../../../platform/context.ts'
import type { Tx } from '../../../platform/database/database.ts'
import { parseDid, parseHandle, type Did } from '../../../protocol/identifiers.ts'
import { narrowedScopes } from '../../../protocol/scopes.ts'
import { consentEnvelope } from '../../../protocol/signed-envelope.ts'
import { type Account, accountOf, accountStatus } from '../../identity/accounts/accounts.ts'
import { announceIn, announce } from '../../identity/account-events/account-events.ts'
import { noteFailedSignIn } from '../../identity/passwords/passwords.ts'
import { statusOf } from '../../../protocol/account-status.ts'
import { resolveHandle } from '../../identity/identity/identity.ts'
import { pageRefusal, type PageCall } from '../page-parts/page-parts.ts'
import { noteWallet, parseProof, proofMembers, provenBy } from '../wallet-proofs/wallet-proofs.ts'
import { decideRequest, denial, keepRequestOpen } from './authorization-requests.ts'
import { insertConsentEvent } from './wallet-consent-event-store.ts'
import { type Consent, completeConsent, decideConsent, type Verdict } from './wallet-consent-store.ts'
import { CONSENT_KEPT_SECS, consentAwaiting, pendingConsent, shownStatus, type ShownStatus } from './wallet-consents.ts'

/** Body of a decision. `grantedScope` is hashed as it is spelled; `matchCode` is outside of the signature. */
export const decisionSchema = Type.Object(
  {
    ...proofMembers,
    did: Type.String(),
    requestId: Type.String(),
    decision: Type.String(),
    grantedScope: Type.Optional(Type.String()),
    matchCode: Type.Optional(Type.String()),
  },
  { additionalProperties: false },
)
type GivenDecision = Static<typeof decisionSchema>

const statusAfter = { approve: 'approved', deny: 'denied' } as const
const isDecision = (text: string): text is keyof typeof statusAfter => Object.hasOwn(statusAfter, text)

/** One refusal for all faults of a proof, so that it reveals neither accounts nor keys. */
const proofRefused = () =>
  new Refusal(401, 'AuthenticationRequired', 'The decision could not be verified', { code: 'AUTHENTICATION_REQUIRED' })
/** The same refusal for unknown, decided and expired requests. */
export const noSuchConsent = () => notFound('No such request is pending')
const alreadyDecided = () => invalidRequest('The request was decided in the meantime')

/**
 * Decide a consent as its wallet says. Returns what was decided.
 *
 * Throws, in this order: `AuthenticationRequired` if the proof is malformed or not fresh, `NotFound` if no such request
 * is pending, `AuthenticationRequired` if the account is not active here, if the signature or its key is not good, or
 * if the request names another account; what `provenBy` and `resolveHandle` throw if these cannot be determined;
 * `Forbidden` for a wrong match code, which leaves the request pending, and `InvalidRequest` if another decision was
 * faster.
 */
export async function decideByWallet(
  exchange: Exchange,
  given: GivenDecision,
): Promise<{ status: Verdict['status']; did: Did }> {
  const { ctx } = exchange
  const { decision, requestId, grantedScope = '', matchCode } = given
  const refused = (reason: string, account: Account | null = null): Refusal => {
    noteFailedSignIn(exchange, reason, account)
    return proofRefused()
  }
  const did = parseDid(given.did)
  const proof = did && parseProof(ctx, did, given)
  if (!did || !proof || !isDecision(decision)) throw refused('malformed or untimely proof')
  const consent = await pendingConsent(ctx, requestId)
  if (consent === null) throw noSuchConsent()
  const account = await accountOf(ctx.db, did)
  if (account === null || statusOf(account) !== 'active') throw refused('account not active', account)
  const signed = consentEnvelope({
    ...proof.signer,
    request: consent.requestId,
    client: consent.clientId,
    decision,
    grantedScope,
  })
  const proven = await provenBy(ctx, proof, signed)
  if (proven === null) throw refused('wrong signature, or not a key of the identity', account)
  if (!(await isMeant(ctx, consent.loginHint, did, proven.alsoKnownAs)))
    throw refused('another account is meant', account)
  if (decision === 'approve' && consent.matchCode !== null && consent.matchCode !== matchCode) {
    noteFailedSignIn(exchange, 'wrong match code', account)
    throw forbidden('The number does not match the one on the page')
  }
  const grantedScopes =
    decision === 'deny' ? null : narrowedScopes(consent.requestedScopes, new Set(grantedScope.split(/\s+/)))
  const verdict = { status: statusAfter[decision], did, grantedScopes }
  await ctx.db.transaction(async (tx) => {
    await record(ctx, tx, consent, verdict)
    await noteWallet(ctx, tx, did)
  })
  announce(exchange, decision === 'approve' ? 'consentApproved' : 'consentDenied', did, { clientId: consent.clientId })
  return { status: verdict.status, did }
}

/**
 * Whether a request is for the account that decides it. A request that names a handle is for the account whose identity
 * claims that handle now and to which the handle resolves: neither of the two alone proves anything.
 */
async function isMeant(
  ctx: Context,
  loginHint: string | null,
  did: Did,
  alsoKnownAs: readonly string[],
): Promise<boolean> {
  if (loginHint === null) return true
  const handle = parseHandle(loginHint)
  if (handle === null) return loginHint === did
  const isClaimed = alsoKnownAs.some((name) => name.toLowerCase() === `at://${handle}`)
  return isClaimed && (await resolveHandle(ctx, handle)) === did
}

/**
 * Deny a request that names the account, for its holder on a page: a denial grants no access, so it needs no proof.
 * Returns false if no such request is pending. Throws `InvalidRequest` if another decision was faster.
 */
export async function denyAsHolder(
  exchange: Exchange,
  account: Pick<Account, 'did' | 'handle'>,
  requestId: string,
): Promise<boolean> {
  const { ctx } = exchange
  const { did } = account
  const consent = await consentAwaiting(ctx, account, requestId)
  if (consent === null) return false
  await ctx.db.transaction((tx) => record(ctx, tx, consent, { status: 'denied', did, grantedScopes: null }))
  announce(exchange, 'consentDenied', did, { clientId: consent.clientId })
  return true
}

/** A denial ends the pushed request. An approval keeps it open until the browser can no longer complete it. */
async function record(ctx: Context, tx: Tx, consent: Consent, verdict: Verdict): Promise<void> {
  const { requestHash, clientId } = consent
  const { status, did, grantedScopes } = verdict
  const now = ctx.clock.now()
  if ((await accountStatus(tx, did)) !== 'active') throw proofRefused()
  const isFirst = (await decideConsent(tx, consent, verdict, now)) > 0
  const isOpen =
    grantedScopes === null
      ? (await decideRequest(ctx, tx, requestHash, denial)) !== null
      : await keepRequestOpen(ctx, tx, requestHash, consent.expiresAt + CONSENT_KEPT_SECS * 1000)
  if (!isFirst || !isOpen) throw alreadyDecided()
  const detail = grantedScopes === null ? {} : { granted_scope: grantedScopes.join(' ') }
  await insertConsentEvent(tx, { requestHash, action: status, accountDid: did, clientId, detail, createdAt: now })
}

/** Messages for a browser that tries to complete a request which is not approved. */
export const unfinished: Record<Exclude<ShownStatus, 'approved'>, string> = {
  pending: 'Your wallet has not approved this request yet. Approve it there, then continue.',
  denied: 'This request was denied in the wallet.',
  completed: 'This request was already completed.',
  expired: 'This request has expired. Please start again.',
}

/**
 * Turn an approval into an authorization code. Returns the URL of the app that the browser continues to. Throws
 * `InvalidRequest`, and changes nothing, if the request is not approved, was completed before, or was decided on the
 * page.
 */
export async function completeByWallet(call: PageCall, requestId: string): Promise<string> {
  const { ctx } = call
  const status = await shownStatus(ctx, requestId)
  if (status !== 'approved') throw pageRefusal(unfinished[status])
  const origin = requestOrigin(call)
  return ctx.db.transaction(async (tx) => {
    const approved = await completeConsent(tx, requestId)
    if (approved === null) throw pageRefusal(unfinished.completed)
    const { requestHash, clientId, did, grantedScope } = approved
    const scopes = grantedScope.split(' ')
    const location = await decideRequest(ctx, tx, requestHash, {
      kind: 'approve',
      did,
      scopes,
      scopeIsFixed: true,
      origin,
    })
    if (location === null) throw pageRefusal(unfinished.completed)
    const createdAt = ctx.clock.now()
    await insertConsentEvent(tx, { requestHash, action: 'completed', accountDid: did, clientId, detail: {}, createdAt })
    await announceIn(tx, call, 'appLetIn', did, { clientId })
    return location
  })
}
