/**
 * Claims: a program shows a code of six digits. The holder of an account enters it, reads what the program may do, and
 * confirms or denies it. Rows decide all races: a claim is completed once, and a registration is confirmed once.
 */
import { randomInt } from 'node:crypto'
import { OAuthError } from '../../../http/errors.ts'
import type { Exchange } from '../../../http/endpoint.ts'
import { chargeGuess } from '../../../http/limiting.ts'
import { requestOrigin } from '../../../http/origin.ts'
import type { Context } from '../../../platform/context.ts'
import { type Tx, WriteConflict } from '../../../platform/database/database.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'
import { accountOf } from '../../identity/accounts/accounts.ts'
import { announce, announceIn } from '../../identity/account-events/account-events.ts'
import { activityOf } from '../../../protocol/account-status.ts'
import {
  completeClaim,
  expireClaim,
  findClaim,
  findClaimByCode,
  findLiveClaim,
  insertClaim,
  isCodeTaken,
  pendingClaimsOf,
  type Claim,
} from './agent-claim-store.ts'
import { insertAgentEvent } from './agent-event-store.ts'
import { newAgentId } from './agent-ids.ts'
import { announceRefusedAgent, noteRequest, pushClaim } from './agent-notices.ts'
import {
  confirmRegistration,
  countClaimed,
  findRegistration,
  insertRegistration,
  ownNameOf,
  revokeRegistration,
  type Registration,
} from './agent-registration-store.ts'
import { assertionExpiry } from './agent-tokens.ts'

// Opening

const USER_CODES = 1_000_000
/** Most random codes that are tried for one claim. If none of them is free, nearly all codes must be in use. */
const MAX_DRAWS = 1000

/** Returns a code that no pending claim has. `randomInt` rejects samples, so that every code is equally likely. */
async function newUserCode(tx: Tx): Promise<string> {
  for (let draw = 0; draw < MAX_DRAWS; draw++) {
    const code = String(randomInt(USER_CODES)).padStart(6, '0')
    if (!(await isCodeTaken(tx, code))) return code
  }
  throw new Error('nearly all user codes are in use')
}

/** Open a claim in place of the pending ones, and notify the holder if the account is known. */
export async function openClaim(
  exchange: Exchange,
  tx: Tx,
  { id: registrationId, did, issuer }: Registration,
  email: string | null = null,
): Promise<Claim> {
  const { config, clock } = exchange.ctx
  const now = clock.now()
  await expireClaimsOf(tx, { id: registrationId, did }, now)
  const { openedWith, openedFrom } = requestOrigin(exchange)
  const claim: Claim = {
    id: newAgentId('cla'),
    registrationId,
    userCode: await newUserCode(tx),
    expiresAt: now + config.agentAuth.userCodeTtlSecs * 1000,
    status: 'pending',
    email,
    openedWith,
    openedFrom,
    createdAt: now,
  }
  await insertClaim(tx, claim)
  await insertAgentEvent(tx, {
    registrationId,
    type: 'claim_initiated',
    did,
    detail: { claim_attempt_id: claim.id },
    now,
  })
  if (did !== null) {
    await noteRequest(exchange, tx, did, issuer)
    await pushClaim(exchange, tx, did, claim)
  }
  return claim
}

/**
 * Returns the claim that can be confirmed now, or a new one. A claim that exists already adds no event and no notice.
 */
export const resumedClaim = async (
  exchange: Exchange,
  tx: Tx,
  registration: Registration,
  email: string | null,
): Promise<Claim> =>
  (await findLiveClaim(tx, registration.id, exchange.ctx.clock.now())) ?? openClaim(exchange, tx, registration, email)

/** What a client is told about a claim. */
export const claimWords = ({ config }: Context, { userCode }: Pick<Claim, 'userCode'>) => ({
  user_code: userCode,
  verification_uri: config.agentAuth.verificationUri,
})

// Ending

async function expireOne(tx: Tx, { id, registrationId }: Claim, did: Did | null, now: Millis): Promise<number> {
  const changed = await expireClaim(tx, id)
  if (changed > 0)
    await insertAgentEvent(tx, { registrationId, type: 'claim_expired', did, detail: { claim_attempt_id: id }, now })
  return changed
}

/** Mark a claim as expired, with its event. Returns 0 if the claim was finished already. */
export const endClaim = async (tx: Tx, claim: Claim, now: Millis): Promise<number> =>
  expireOne(tx, claim, (await findRegistration(tx, claim.registrationId))?.did ?? null, now)

async function expireClaimsOf(tx: Tx, { id, did }: Pick<Registration, 'id' | 'did'>, now: Millis): Promise<void> {
  for (const claim of await pendingClaimsOf(tx, id)) await expireOne(tx, claim, did, now)
}

/** Insert a registration, with its event. Throws a unique violation as `insertRegistration` does. */
export async function enterRegistration(tx: Tx, registration: Registration, now: Millis): Promise<void> {
  const { id, did, type, scopes } = registration
  await insertRegistration(tx, registration)
  await insertAgentEvent(tx, {
    registrationId: id,
    type: 'registered',
    did,
    detail: { registration_type: type, scopes },
    now,
  })
}

/**
 * End a registration for good, with its event, and its pending codes. If it was revoked before, adds no second event
 * and returns 0.
 */
export async function endRegistration(
  tx: Tx,
  { id, did }: Pick<Registration, 'id' | 'did'>,
  now: Millis,
  detail: Record<string, unknown> = {},
): Promise<number> {
  const changed = await revokeRegistration(tx, id, now)
  if (changed === 0) return 0
  await insertAgentEvent(tx, { registrationId: id, type: 'revoked', did, detail, now })
  await expireClaimsOf(tx, { id, did }, now)
  return changed
}

// Entering a code

/** Why a code cannot be confirmed, in the order of the checks. */
export type ClaimFault = 'unknown' | 'completed' | 'expired' | 'mismatch' | 'claimed' | 'closed'

export type EnteredCode = { ok: true; claim: Claim; registration: Registration } | { ok: false; fault: ClaimFault }

/** Returns the digits of a typed code. People may write it in two groups. */
export const plainCode = (typed: string): string => typed.replaceAll(/[\s-]/g, '')

/**
 * Look up the code that was entered as this account. Throws `RateLimitExceeded` after ten codes within five minutes
 * that are unknown or belong to another account.
 */
export async function enteredCode(
  exchange: Exchange,
  did: Did,
  typed: string,
  registrationId: string | null = null,
): Promise<EnteredCode> {
  const { db, clock } = exchange.ctx
  const takeBack = await chargeGuess(exchange, { name: 'agentUserCode', key: did })
  const claim = await findClaimByCode(db, plainCode(typed))
  const registration = claim && (await findRegistration(db, claim.registrationId))
  if (claim === null || registration === null) return { ok: false, fault: 'unknown' }
  const isForeign = registration.did !== null && registration.did !== did
  if (!isForeign) takeBack()
  const fault = faultOfClaim(claim, registration, { did, registrationId, now: clock.now() })
  if (fault !== null && isForeign && registration.status === 'active') announceRefusedAgent(exchange, registration.did!)
  return fault === null ? { ok: true, claim, registration } : { ok: false, fault }
}

function faultOfClaim(
  claim: Claim,
  registration: Registration,
  { did, registrationId, now }: { did: Did; registrationId: string | null; now: Millis },
): ClaimFault | null {
  if (claim.status === 'completed') return 'completed'
  if (claim.status === 'expired' || claim.expiresAt <= now) return 'expired'
  if (registrationId !== null && registrationId !== registration.id) return 'mismatch'
  if (registration.status === 'claimed') return 'claimed'
  if (registration.status === 'revoked' || (registration.did !== null && registration.did !== did)) return 'closed'
  return null
}

// Deciding

/** Most agents of one account. All of them are listed at once. */
const MAX_CLAIMED_AGENTS = 500

/**
 * `lost`: another request decided meanwhile. `closed`: the registration is revoked or another account's, or the account
 * is not active or has the most agents that it may have. `gone`: what the holder was shown has already served a
 * decision, or the holder's access has ended.
 */
type Decision = 'done' | 'lost' | 'closed' | 'gone'

/** Uses up what the holder was shown, in the transaction of the decision. Returns false if it was used up before. */
export type Take = (tx: Tx) => Promise<boolean>

/** Returns the scopes that an agent gets when it is confirmed. */
export const grantedScopes = ({ config }: Context): readonly string[] => config.agentAuth.grantedScopes

/**
 * Confirm a claim as the holder of an account, who has been shown `grantedScopes`: the registration gets the account
 * and these scopes, in one transaction. Only the first of several confirmations succeeds. `privateReads` says whether
 * the holder lets the agent read what only the account sees.
 */
export async function confirmClaim(
  exchange: Exchange,
  did: Did,
  claimId: string,
  { privateReads, take }: Pick<Registration, 'privateReads'> & { take?: Take },
): Promise<Decision> {
  const { ctx } = exchange
  const now = ctx.clock.now()
  const scopes = grantedScopes(ctx)
  return ctx.db.transaction(async (tx): Promise<Decision> => {
    await exchange.revalidate(tx)
    if (take && !(await take(tx))) return 'gone'
    const account = await accountOf(tx, did)
    const claim = await findClaim(tx, claimId)
    const registration = claim && (await findRegistration(tx, claim.registrationId))
    if (account === null || !activityOf(account).active) return 'closed'
    if (claim === null || registration === null) return 'lost'
    if (registration.status === 'revoked' || (registration.did !== null && registration.did !== did)) return 'closed'
    if (registration.status === 'claimed') return 'lost'
    if ((await countClaimed(tx, did)) >= MAX_CLAIMED_AGENTS) return 'closed'
    if ((await completeClaim(tx, claim.id, now)) === 0) return 'lost'
    const { id } = registration
    if (
      (await confirmRegistration(tx, {
        id,
        did,
        scopes,
        privateReads,
        assertionExpiresAt: assertionExpiry(ctx),
        now,
      })) === 0
    )
      throw new WriteConflict('the registration')
    await insertAgentEvent(tx, {
      registrationId: id,
      type: 'claim_confirmed',
      did,
      detail: { claim_attempt_id: claim.id, scopes, ...(!privateReads && { private_reads: false }) },
      now,
    })
    await announceIn(tx, exchange, 'agentConfirmed', did, { name: ownNameOf(registration) })
    return 'done'
  })
}

/** Deny a claim: end the registration if it belongs to the account, otherwise only the code. */
export async function denyClaim(exchange: Exchange, did: Did, claimId: string, take: Take): Promise<Decision> {
  const { db, clock } = exchange.ctx
  const now = clock.now()
  const decision = await db.transaction(async (tx): Promise<Decision> => {
    await exchange.revalidate(tx)
    if (!(await take(tx))) return 'gone'
    const claim = await findClaim(tx, claimId)
    const registration = claim && (await findRegistration(tx, claim.registrationId))
    if (claim?.status !== 'pending' || registration?.status !== 'active') return 'lost'
    if (registration.did !== null && registration.did !== did) return 'closed'
    if (registration.did === did) await endRegistration(tx, registration, now)
    else await endClaim(tx, claim, now)
    return 'done'
  })
  if (decision === 'done') announce(exchange, 'agentDenied', did)
  return decision
}

/** One refusal for all cases that would reveal to whom a registration belongs. */
const notYours = () => new OAuthError(403, 'access_denied', 'This account cannot confirm the registration')
const inFlight = (status: number) => new OAuthError(status, 'claimed_or_in_flight', 'The code has already been used')

/** The refusals of a confirmation. */
export const claimRefusals: Record<ClaimFault | Exclude<Decision, 'done'>, () => OAuthError> = {
  unknown: () => new OAuthError(400, 'invalid_user_code', 'There is no such code'),
  completed: () => inFlight(400),
  expired: () => new OAuthError(400, 'claim_expired', 'The code has expired'),
  mismatch: () => new OAuthError(400, 'invalid_request', 'The code belongs to another registration'),
  claimed: () => inFlight(400),
  closed: notYours,
  lost: () => inFlight(409),
  gone: () => inFlight(409),
}
