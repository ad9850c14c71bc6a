/** What programs call to register and to show a code, and what wallets call to confirm it. */
import { hasMembers } from '../../../base/members.ts'
import { Type } from '@sinclair/typebox'
import type { RequestBody } from '../../../http/body.ts'
import { route, type Exchange, type Guard, type RouteCall } from '../../../http/endpoint.ts'
import { invalidClaim, notFound, OAuthError } from '../../../http/errors.ts'
import { readJson } from '../../../http/json-input.ts'
import { wireTime } from '../../../protocol/identifiers.ts'
import { inOtherWords } from '../../../http/credential-guards.ts'
import { owner, type OwnerCaller } from '../../access/auth/auth.ts'
import { keepPreview, previewedScopes } from './agent-claim-page-store.ts'
import { claimRefusals, claimWords, confirmClaim, enteredCode, grantedScopes, resumedClaim } from './agent-claims.ts'
import { POLL_SECS } from './agent-grants.ts'
import { claimTokenHash } from './agent-ids.ts'
import { findRegistrationByClaimToken } from './agent-registration-store.ts'
import { registerAgent } from './agent-registrations.ts'
import { claimsToBeAgentToken } from './agent-tokens.ts'

/** The longest address. RFC 5321, 4.5.3.1. */
const MAX_EMAIL_CHARS = 320
/** Largest body: an assertion and an address fit. */
const MAX_BODY_BYTES = 32 * 1024

const refused = (error: string, reason: string) => new OAuthError(400, error, reason)

/** Returns the JSON object in the body. Throws `invalid_request` if there is none. */
async function membersOf(body: RequestBody): Promise<object> {
  if (body.contentType !== 'application/json')
    throw refused('invalid_request', 'the body must be of type application/json')
  const value = await body.json(MAX_BODY_BYTES)
  if (!hasMembers(value)) throw refused('invalid_request', 'the body must be a JSON object')
  return value
}

/** Returns these members of an object. Throws `invalid_request` if one of them is not a text. */
function textsOf<Name extends string>(members: object, names: readonly Name[]): Partial<Record<Name, string>> {
  const given = names.flatMap((name): [Name, unknown][] =>
    Object.hasOwn(members, name) ? [[name, members[name as keyof typeof members]]] : [],
  )
  for (const [name, text] of given)
    if (typeof text !== 'string') throw refused('invalid_request', `${name} must be a string`)
  return Object.fromEntries(given) as Partial<Record<Name, string>>
}

async function identity(call: RouteCall<null>): Promise<object> {
  call.replyHeaders.set('Cache-Control', 'no-store')
  return registerAgent(
    call,
    textsOf(await membersOf(call.body), ['type', 'assertion_type', 'assertion', 'login_hint', 'client_name']),
  )
}

/** Open a claim for a registration that waits, or return the code of the open one. */
async function claim(call: RouteCall<null>): Promise<object> {
  const { ctx, body, replyHeaders } = call
  replyHeaders.set('Cache-Control', 'no-store')
  const { claim_token: token = '', email = null } = textsOf(await membersOf(body), ['claim_token', 'email'])
  if (token === '') throw refused('invalid_request', 'claim_token is missing')
  if (email !== null && email.length > MAX_EMAIL_CHARS) throw refused('invalid_request', 'email is too long')
  const now = ctx.clock.now()
  const opened = await ctx.db.transaction(async (tx) => {
    const registration = await findRegistrationByClaimToken(tx, claimTokenHash(token))
    if (registration === null || registration.status === 'revoked')
      throw refused('invalid_claim_token', 'The claim token is not valid')
    if (registration.status === 'claimed')
      throw refused('claimed_or_in_flight', 'The registration is already confirmed')
    if ((registration.claimTokenExpiresAt ?? 0) <= now) throw refused('claim_expired', 'The claim token has expired')
    return resumedClaim(call, tx, registration, email)
  })
  return {
    registration_id: opened.registrationId,
    claim_attempt_id: opened.id,
    status: 'initiated',
    expires_at: wireTime(opened.expiresAt),
    claim_attempt: {
      ...claimWords(ctx, opened),
      expires_in: Math.ceil((opened.expiresAt - now) / 1000),
      interval: POLL_SECS,
    },
  }
}

/**
 * The guard of account owners, with the error names of these routes. Throws `invalid_token` (401), or `access_denied`
 * and `insufficient_scope` (403).
 */
const claimOwner: Guard<OwnerCaller> = inOtherWords(owner, (refusal, exchange) => {
  const { status, name, message, options } = refusal
  if (status < 400 || status > 403) return refusal
  if (name === 'AccountTakedown') return new OAuthError(403, 'access_denied', message)
  if (status !== 403 || name === 'AccountNotFound')
    return new OAuthError(401, 'invalid_token', message, options.headers)
  return new OAuthError(403, isAgents(exchange) ? 'access_denied' : 'insufficient_scope', message)
})

const isAgents = ({ request }: Exchange): boolean =>
  claimsToBeAgentToken((request.headers.get('authorization') ?? '').replace(/^bearer /i, ''))

/** Whether a confirmation lets the agent read what only the account sees. Throws `invalid_request`. */
function privateReadsOf(members: { private_reads?: unknown }): boolean {
  const { private_reads: privateReads = true } = members
  if (typeof privateReads !== 'boolean') throw refused('invalid_request', 'private_reads must be true or false')
  return privateReads
}

/**
 * Confirms a claim. The scopes are those of the configuration. They may have changed since a wallet showed them, if the
 * server was restarted.
 */
async function confirm(call: RouteCall<OwnerCaller>): Promise<object> {
  const { ctx, caller, body, replyHeaders } = call
  replyHeaders.set('Cache-Control', 'no-store')
  const members = await membersOf(body)
  const { user_code: userCode = '', registration_id: registrationId = null } = textsOf(members, [
    'user_code',
    'registration_id',
  ])
  const privateReads = privateReadsOf(members)
  if (userCode === '') throw refused('invalid_request', 'user_code is missing')
  const entered = await enteredCode(call, caller.did, userCode, registrationId)
  if (!entered.ok) throw claimRefusals[entered.fault]()
  const shown = await previewedScopes(ctx.db, caller.did, entered.claim.id)
  if (shown !== null && shown.join(' ') !== grantedScopes(ctx).join(' '))
    throw refused('invalid_request', 'What the agent may do has changed since the preview: request the preview again')
  const decision = await confirmClaim(call, caller.did, entered.claim.id, { privateReads })
  if (decision !== 'done') throw claimRefusals[decision]()
  const echo = privateReads ? {} : { private_reads: false }
  return { registration_id: entered.registration.id, status: 'claimed', did: caller.did, ...echo }
}

const previewSchema = Type.Object({ userCode: Type.Optional(Type.Unknown()) })

/** Shows a claim to a wallet. The response is the same whatever is wrong with a code. */
async function preview(call: RouteCall<OwnerCaller>): Promise<object> {
  const { ctx, caller, body, replyHeaders } = call
  replyHeaders.set('Cache-Control', 'no-store')
  const { userCode } = await readJson(body, previewSchema, MAX_BODY_BYTES)
  if (typeof userCode !== 'string' || userCode === '') throw invalidClaim('userCode is missing')
  const entered = await enteredCode(call, caller.did, userCode)
  if (!entered.ok) throw notFound('There is no such code for this account')
  const { id, type, issuer, subject, clientName } = entered.registration
  const { id: claimId, expiresAt } = entered.claim
  const scopes = grantedScopes(ctx)
  await keepPreview(ctx.db, { did: caller.did, claimId, scopes }, expiresAt)
  return {
    registrationId: id,
    registrationType: type,
    ...(issuer !== null && { issuer }),
    ...(subject !== null && { subject }),
    ...(clientName !== null && { clientName }),
    scopes,
    userCodeExpiresAt: wireTime(expiresAt),
  }
}

export const agentIdentityRoutes = [
  route('POST', '/agent/identity', { limit: 'agentIdentity', handler: identity }),
  route('POST', '/agent/identity/claim', { handler: claim }),
  route('POST', '/agent/identity/claim/confirm', { auth: claimOwner, limit: 'agentClaimConfirm', handler: confirm }),
  route('POST', '/v1/agents/claim-preview', { auth: owner, limit: 'agentClaimConfirm', handler: preview }),
]
