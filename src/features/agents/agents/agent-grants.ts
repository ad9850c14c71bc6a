/** The two grants by which agents get access tokens at the token endpoint. Neither has a client or a DPoP proof. */
import { MINUTE_MILLIS } from '../../../base/durations.ts'
import { BoundedCache } from '../../../base/bounded-cache.ts'
import type { Exchange } from '../../../http/endpoint.ts'
import { OAuthError } from '../../../http/errors.ts'
import type { Grant } from '../../../http/feature.ts'
import { charge } from '../../../http/limiting.ts'
import { required, type OAuthParameters } from '../../../http/oauth-parameters.ts'
import { isOwnUrl } from '../../../platform/configuration/service-names.ts'
import { wantsAgents } from '../../../platform/configuration/capabilities.ts'
import { perContext, type Context } from '../../../platform/context.ts'
import { lockOn, type Tx } from '../../../platform/database/database.ts'
import { CLAIM_GRANT, JWT_BEARER_GRANT } from '../../../protocol/agent-names.ts'
import { wireTime, type Did, type Millis } from '../../../protocol/identifiers.ts'
import { findLiveClaim, hasClaims } from './agent-claim-store.ts'
import { insertAgentEvent } from './agent-event-store.ts'
import { scopesNow, type ScopeFault } from './agent-granted-scope.ts'
import { claimTokenHash } from './agent-ids.ts'
import {
  findRegistration,
  findRegistrationByClaimToken,
  updateAssertionExpiry,
  type Registration,
} from './agent-registration-store.ts'
import {
  AGENT_TOKEN_TTL_SECS,
  assertionExpiry,
  issueAgentToken,
  issueAssertion,
  readAssertion,
} from './agent-tokens.ts'

const refused = (error: string, reason: string) => new OAuthError(400, error, reason)
const invalidGrant = (reason: string) => refused('invalid_grant', reason)
const revoked = () => refused('access_denied', 'The registration was revoked')

/** Returns the grants of agents by `grant_type`; none if no agent can register here. */
export const agentGrants = ({ config }: Context): Readonly<Record<string, Grant>> => (wantsAgents(config) ? grants : {})

const grants = { [JWT_BEARER_GRANT]: exchangeAssertion, [CLAIM_GRANT]: pollClaim }

// Shared: issuing tokens

interface Granted {
  registration: Registration
  did: Did
  scopes: readonly string[]
}

/** Returns what a confirmed registration may have now. Throws the refusals below. */
async function granted(
  ctx: Context,
  tx: Tx,
  registration: Registration,
  did: Did,
  had?: readonly string[],
): Promise<Granted> {
  const scopes = await scopesNow(ctx, tx, { ...registration, did }, had)
  if (typeof scopes === 'string') throw scopeRefusals[scopes]()
  return { registration, did, scopes }
}

const scopeRefusals: Record<ScopeFault, () => OAuthError> = {
  untrusted: () => refused('access_denied', 'The provider is no longer enabled on this server'),
  inactive: () => refused('access_denied', 'The account is not active'),
  'no scope': () => invalidGrant('The registration has no scope left'),
}

/** Record that a token is issued, in the transaction that decides so. */
const recordToken = (
  tx: Tx,
  { registration, did, scopes }: Granted,
  grant: 'claim' | 'jwt_bearer',
  now: Millis,
): Promise<void> =>
  insertAgentEvent(tx, {
    registrationId: registration.id,
    type: 'token_exchanged',
    did,
    detail: { grant, scope: scopes.join(' ') },
    now,
  })

const tokenReply = async (ctx: Context, { registration, did, scopes }: Granted) => ({
  access_token: await issueAgentToken(ctx, { did, registrationId: registration.id, scopes }),
  token_type: 'Bearer',
  expires_in: AGENT_TOKEN_TTL_SECS,
  scope: scopes.join(' '),
})

/** Throws `RateLimitExceeded` for an agent that fetches far more tokens than it needs. */
const chargeToken = (exchange: Exchange, registrationId: string): Promise<void> =>
  charge(exchange, { name: 'agentToken', key: registrationId })

// The assertion grant

/** Source: RFC 7523, 2.1; RFC 8707, section 2. */
async function exchangeAssertion(exchange: Exchange, parameters: OAuthParameters): Promise<object> {
  const { ctx } = exchange
  const { config, db, clock } = ctx
  const text = required(parameters, 'assertion')
  if (parameters['resource'] !== undefined && !parameters['resource'].split(' ').every((one) => isOwnUrl(config, one)))
    throw refused('invalid_target', 'This server issues tokens for itself only')
  const assertion = await readAssertion(ctx, text)
  if (assertion === null) throw invalidGrant('The assertion is not valid')
  await chargeToken(exchange, assertion.registrationId)
  const now = clock.now()
  const paid = await db.transactionOn(lockOn('agent', assertion.registrationId), async (tx) => {
    const registration = await findRegistration(tx, assertion.registrationId)
    if (registration === null) throw invalidGrant('There is no such registration')
    if (registration.status === 'revoked') throw revoked()
    const { did, status } = registration
    if (status !== 'claimed' || did === null || did !== assertion.subject)
      throw invalidGrant('The registration is not confirmed')
    const grant = await granted(ctx, tx, registration, did, assertion.scopes)
    await recordToken(tx, grant, 'jwt_bearer', now)
    return grant
  })
  return tokenReply(ctx, paid)
}

// The polling grant

/** Minimum time between two polls of a client. */
export const POLL_SECS = 5
const MAX_POLLED = 20_000

/**
 * When each claim token was last polled, by its hash, on the monotonic clock. A token that was forgotten may be polled
 * at once.
 */
const polls = perContext(() => new BoundedCache<number>(MAX_POLLED))

/** Throws `slow_down` within five seconds of the last accepted poll. Unknown tokens have to wait like known ones. */
function waitForTurn(ctx: Context, hash: string): void {
  const now = ctx.clock.monotonic()
  const last = polls(ctx).get(hash)
  if (last !== undefined && now - last < POLL_SECS * 1000)
    throw refused('slow_down', 'Poll at most once every five seconds')
  polls(ctx).set(hash, now)
}

/** Minimum remaining lifetime of a stored assertion for it to be sent once more. */
const MIN_ASSERTION_MILLIS = MINUTE_MILLIS

/** Report the state of a claim to the agent, and issue tokens once it is confirmed. */
async function pollClaim(exchange: Exchange, parameters: OAuthParameters): Promise<object> {
  const { ctx } = exchange
  const { db, clock } = ctx
  const hash = claimTokenHash(required(parameters, 'claim_token'))
  waitForTurn(ctx, hash)
  const found = await findRegistrationByClaimToken(db, hash)
  if (found === null) throw invalidGrant('The claim token is not valid')
  if (found.status === 'active') await refuseWaiting(ctx, found)
  await chargeToken(exchange, found.id)
  const now = clock.now()
  const paid = await db.transactionOn(lockOn('agent', found.id), async (tx) => {
    const registration = await findRegistration(tx, found.id)
    if (registration === null) throw invalidGrant('There is no such registration')
    if (registration.status === 'revoked') throw revoked()
    if (registration.status === 'active' || registration.did === null)
      throw refused('expired_token', 'The code has expired')
    if (now >= payoutEnd(ctx, registration)) throw invalidGrant('The claim token has been used')
    const grant = await granted(ctx, tx, registration, registration.did)
    const kept = registration.assertionExpiresAt ?? 0
    const expiresAt = kept - now < MIN_ASSERTION_MILLIS ? assertionExpiry(ctx) : kept
    if (expiresAt !== kept) await updateAssertionExpiry(tx, registration.id, expiresAt, now)
    await recordToken(tx, grant, 'claim', now)
    return { ...grant, expiresAt }
  })
  const { registration, did: subject, scopes, expiresAt } = paid
  return {
    ...(await tokenReply(ctx, paid)),
    identity_assertion: await issueAssertion(ctx, registration, { subject, scopes, expiresAt }),
    assertion_expires: wireTime(expiresAt),
  }
}

/**
 * Throws `authorization_pending` while a code can be confirmed, or none has been requested. Returns if neither seems to
 * be the case now.
 */
async function refuseWaiting({ db, clock }: Context, { id, claimTokenExpiresAt }: Registration): Promise<void> {
  const now = clock.now()
  if ((claimTokenExpiresAt ?? 0) <= now) return
  if ((await findLiveClaim(db, id, now)) === null && (await hasClaims(db, id))) return
  throw refused('authorization_pending', 'The agent is not confirmed yet')
}

/** A claim token stays redeemable for a while, so that a client can retry after a lost response. */
const payoutEnd = ({ config }: Context, { claimTokenExpiresAt, confirmedAt }: Registration): Millis =>
  Math.max(claimTokenExpiresAt ?? 0, (confirmedAt ?? 0) + config.agentAuth.userCodeTtlSecs * 1000)
