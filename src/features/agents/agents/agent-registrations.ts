/** How programs register: anonymously, for the holder of an email address, or vouched for by a trusted provider. */
import type { Exchange } from '../../../http/endpoint.ts'
import { OAuthError } from '../../../http/errors.ts'
import { plainName } from '../../../http/html.ts'
import { charge } from '../../../http/limiting.ts'
import { requestOrigin } from '../../../http/origin.ts'
import type { Tx } from '../../../platform/database/database.ts'
import { ID_JAG, MAX_AGENT_NAME_CHARS } from '../../../protocol/agent-names.ts'
import { wireTime, type Did } from '../../../protocol/identifiers.ts'
import { accountOf, accountWithEmail, type Account } from '../../identity/accounts/accounts.ts'
import { activityOf } from '../../../protocol/account-status.ts'
import { findLiveClaim, type Claim } from './agent-claim-store.ts'
import { claimWords, enterRegistration, openClaim } from './agent-claims.ts'
import { newAgentId, newClaimToken } from './agent-ids.ts'
import { announceRefusedAgent } from './agent-notices.ts'
import {
  findRegistrationOfSubject,
  updateAssertionExpiry,
  updateClaimToken,
  type Registration,
  type RegistrationType,
} from './agent-registration-store.ts'
import { clampedScopes } from './agent-scopes.ts'
import { assertionExpiry, issueAssertion } from './agent-tokens.ts'
import { verifyIdentityAssertion, type VerifiedIdentity } from './identity-assertions.ts'

/** The members of the request's body that are used. */
export type IdentityRequest = Partial<
  Record<'type' | 'assertion_type' | 'assertion' | 'login_hint' | 'client_name', string>
>

const nameIn = ({ client_name: name = '' }: IdentityRequest): string | null =>
  plainName(name, MAX_AGENT_NAME_CHARS) || null

const invalid = (reason: string) => new OAuthError(400, 'invalid_request', reason)
const notEnabled = (status: number, error: string) =>
  new OAuthError(status, error, 'This type of registration is not enabled on this server')

/** Register an agent in the way that the request names. Throws the errors of that way. */
export async function registerAgent(exchange: Exchange, request: IdentityRequest): Promise<object> {
  const { type = '' } = request
  if (type === '') throw invalid('type is missing')
  const register = Object.hasOwn(ways, type) ? ways[type as keyof typeof ways] : undefined
  if (register === undefined) throw invalid('type must be anonymous, service_auth or identity_assertion')
  if ((request.client_name ?? '').length > MAX_AGENT_NAME_CHARS)
    throw invalid(`client_name must have at most ${MAX_AGENT_NAME_CHARS} characters`)
  return register(exchange, request)
}

const ways = {
  anonymous: registerAnonymously,
  service_auth: registerForAddress,
  identity_assertion: registerByProvider,
} satisfies Record<
  Exclude<RegistrationType, 'child'>,
  (exchange: Exchange, request: IdentityRequest) => Promise<object>
>

/** Insert a registration that waits to be confirmed, with its event. */
async function addRegistration(
  exchange: Exchange,
  tx: Tx,
  given: Pick<Registration, 'type' | 'scopes' | 'clientName'> &
    Partial<Pick<Registration, 'did' | 'issuer' | 'subject' | 'email' | 'assertionExpiresAt'>>,
): Promise<{ registration: Registration; claimToken: string }> {
  const { config, clock } = exchange.ctx
  const now = clock.now()
  const { openedWith, openedFrom } = requestOrigin(exchange)
  const { claimToken, hash } = newClaimToken()
  const registration: Registration = {
    id: newAgentId('reg'),
    did: null,
    issuer: null,
    subject: null,
    parentDid: null,
    email: null,
    privateReads: true,
    openedWith,
    openedFrom,
    assertionExpiresAt: null,
    claimTokenHash: hash,
    claimTokenExpiresAt: now + config.agentAuth.claimTokenTtlSecs * 1000,
    confirmedAt: null,
    status: 'active',
    createdAt: now,
    updatedAt: now,
    ...given,
  }
  await enterRegistration(tx, registration, now)
  return { registration, claimToken }
}

/**
 * Charges a registration that is about to add rows. Each way to register has a budget of its own: someone who floods a
 * way that is open to everyone must not lock out agents with a provider, or other networks. Throws `RateLimitExceeded`.
 */
const chargeRow = (exchange: Exchange, type: RegistrationType): Promise<void> =>
  charge(exchange, { name: 'agentIdentityTotal', key: type, from: exchange.client })

async function registerAnonymously(exchange: Exchange, request: IdentityRequest): Promise<object> {
  const { ctx } = exchange
  const { anonymousEnabled, preClaimScopes: scopes } = ctx.config.agentAuth
  if (!anonymousEnabled) throw notEnabled(400, 'anonymous_not_enabled')
  await chargeRow(exchange, 'anonymous')
  const expiresAt = assertionExpiry(ctx)
  const { registration, claimToken } = await ctx.db.transaction((tx) =>
    addRegistration(exchange, tx, {
      type: 'anonymous',
      scopes,
      clientName: nameIn(request),
      assertionExpiresAt: expiresAt,
    }),
  )
  return {
    ...(await withAssertion(exchange, registration, { subject: registration.id, scopes, expiresAt })),
    claim_token: claimToken,
  }
}

/** The response to an agent that gets an assertion. */
async function withAssertion(
  { ctx }: Exchange,
  registration: Registration,
  asserted: Parameters<typeof issueAssertion>[2],
): Promise<object> {
  return {
    registration_id: registration.id,
    registration_type: registration.type,
    identity_assertion: await issueAssertion(ctx, registration, asserted),
    assertion_expires: wireTime(asserted.expiresAt),
    scopes: asserted.scopes,
  }
}

/** The response to an agent that has to show a code. */
const withCode = ({ ctx }: Exchange, claimToken: string, claim: Claim) => ({
  claim_token: claimToken,
  claim: { ...claimWords(ctx, claim), expires_at: wireTime(claim.expiresAt) },
})

/** Returns the active account with an address; null also for an account that cannot confirm agents. */
async function holderAt({ ctx }: Exchange, email: string): Promise<Account | null> {
  const account = await accountWithEmail(ctx.db, email)
  return account !== null && activityOf(account).active ? account : null
}

/** The response tells whether an address has an account here. The limit on the client's address prevents a search. */
async function registerForAddress(exchange: Exchange, request: IdentityRequest): Promise<object> {
  const { login_hint: hint = '' } = request
  const { ctx } = exchange
  const { serviceAuthEnabled, grantedScopes: scopes } = ctx.config.agentAuth
  if (!serviceAuthEnabled) throw notEnabled(400, 'service_auth_not_enabled')
  const email = hint.trim().toLowerCase()
  if (email === '') throw invalid('login_hint is missing')
  await charge(exchange, 'agentServiceAuth')
  const account = await holderAt(exchange, email)
  if (account === null) throw accessDenied(400, 'No account here has this email address')
  await chargeRow(exchange, 'service_auth')
  return ctx.db.transaction(async (tx) => {
    await requireAccount(tx, account, 400)
    const { registration, claimToken } = await addRegistration(exchange, tx, {
      type: 'service_auth',
      did: account.did,
      email,
      scopes,
      clientName: nameIn(request),
    })
    const claim = await openClaim(exchange, tx, registration)
    return {
      registration_id: registration.id,
      registration_type: registration.type,
      ...withCode(exchange, claimToken, claim),
    }
  })
}

const accessDenied = (status: number, reason: string) => new OAuthError(status, 'access_denied', reason)

/** Throws `access_denied` if the account was deleted meanwhile: no row about it may be added after the deletion. */
async function requireAccount(tx: Tx, { did }: Account, status: number): Promise<void> {
  if ((await accountOf(tx, did)) === null) throw accessDenied(status, 'The account no longer exists')
}

// Vouched for by a provider

/** Requests within this time for another code of one registration get the same code. */
const FRESH_CODE_MILLIS = 5000

/** The refusal of an agent that its user has to confirm first, with the code to show to the user. */
const interactionRequired = (code: object): Response =>
  Response.json(
    { error: 'interaction_required', error_description: 'The account holder has to confirm this agent', ...code },
    { status: 401 },
  )

async function registerByProvider(exchange: Exchange, request: IdentityRequest): Promise<object> {
  const { ctx } = exchange
  if (ctx.config.agentAuth.trustedIssuers.length === 0) throw notEnabled(403, 'issuer_not_enabled')
  const { assertion_type: assertionType = ID_JAG, assertion = '' } = request
  if (assertionType !== ID_JAG) throw invalid(`assertion_type must be ${ID_JAG}`)
  if (assertion === '') throw invalid('assertion is missing')
  const identity = await verifyIdentityAssertion(ctx, assertion)
  if (!identity.ok) throw new OAuthError(identity.status, identity.error, identity.reason)
  return registerIdentity(exchange, identity, nameIn(request))
}

type Identity = Extract<VerifiedIdentity, { ok: true }>

/**
 * The transaction decides whether an identity is new: of two simultaneous first requests, the second finds the first.
 */
async function registerIdentity(
  exchange: Exchange,
  { issuer, subject, email }: Identity,
  clientName: string | null,
): Promise<object> {
  const { ctx } = exchange
  const known = await findRegistrationOfSubject(ctx.db, issuer, subject)
  const account = known === null ? await accountToAsk(exchange, email) : null
  if (known === null) await chargeRow(exchange, 'identity_assertion')
  const expiresAt = assertionExpiry(ctx)
  const outcome = await ctx.db.transaction(async (tx) => {
    const registration = await findRegistrationOfSubject(tx, issuer, subject)
    if (registration === null)
      return account === null ? null : firstSeen(exchange, tx, { account, issuer, subject, email, clientName })
    if (registration.status === 'claimed') await updateAssertionExpiry(tx, registration.id, expiresAt, ctx.clock.now())
    return registration.status === 'active' ? askedAgain(exchange, tx, registration) : { registration, code: null }
  })
  // The identity was known, but its account was deleted meanwhile.
  if (outcome === null) throw accessDenied(403, 'The account no longer exists')
  const { registration, code } = outcome
  if (code !== null) return interactionRequired(code)
  if (registration.status === 'revoked') {
    if (registration.did !== null) announceRefusedAgent(exchange, registration.did)
    throw accessDenied(403, 'The registration was revoked')
  }
  const did = await activeHolder(exchange, registration.did)
  return withAssertion(exchange, registration, {
    subject: did,
    scopes: clampedScopes(ctx.config, registration),
    expiresAt,
  })
}

/**
 * Returns the account that a new identity requests. Throws `invalid_grant` without an address, `access_denied` without
 * an account.
 */
async function accountToAsk(exchange: Exchange, email: string | null): Promise<Account> {
  if (email === null) throw new OAuthError(400, 'invalid_grant', 'The assertion names no verified email address')
  const account = await holderAt(exchange, email)
  if (account === null) throw accessDenied(403, 'No account here has the email address of the assertion')
  return account
}

async function activeHolder({ ctx }: Exchange, did: Did | null): Promise<Did> {
  const account = did && (await accountOf(ctx.db, did))
  if (!account || !activityOf(account).active) throw accessDenied(403, 'The account is not active')
  return account.did
}

async function firstSeen(
  exchange: Exchange,
  tx: Tx,
  { account, ...given }: { account: Account } & Pick<Registration, 'issuer' | 'subject' | 'email' | 'clientName'>,
) {
  const { grantedScopes: scopes } = exchange.ctx.config.agentAuth
  await requireAccount(tx, account, 403)
  const { registration, claimToken } = await addRegistration(exchange, tx, {
    type: 'identity_assertion',
    did: account.did,
    scopes,
    ...given,
  })
  return { registration, code: withCode(exchange, claimToken, await openClaim(exchange, tx, registration)) }
}

/**
 * Returns a new claim token, because only the hash of the old one is known; and the pending code or, after a moment, a
 * new one.
 */
async function askedAgain(exchange: Exchange, tx: Tx, registration: Registration) {
  const { config, clock } = exchange.ctx
  const now = clock.now()
  const { claimToken, hash } = newClaimToken()
  await updateClaimToken(tx, registration.id, hash, now + config.agentAuth.claimTokenTtlSecs * 1000, now)
  const pending = await findLiveClaim(tx, registration.id, now)
  const claim =
    pending !== null && now - pending.createdAt < FRESH_CODE_MILLIS
      ? pending
      : await openClaim(exchange, tx, registration)
  return { registration, code: withCode(exchange, claimToken, claim) }
}
