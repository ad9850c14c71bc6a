/**
 * Events by which trusted issuers end agents: security event tokens, pushed to this server.
 *
 * Source: RFC 8417; RFC 8935, 2.2 and 2.3 for responses.
 */
import { hasMembers, membersOf } from '../../../base/members.ts'
import { route, type RouteCall } from '../../../http/endpoint.ts'
import { Refusal } from '../../../http/errors.ts'
import { ASSERTION_REVOKED } from '../../../protocol/agent-names.ts'
import { announceIn } from '../../identity/account-events/account-events.ts'
import { endRegistration } from './agent-claims.ts'
import { findRegistrationOfSubject } from './agent-registration-store.ts'
import { isTime, verifyIssuerToken, type Claims, type TokenFault } from './issuer-tokens.ts'

const EVENT_TOKEN = 'application/secevent+jwt'
const MAX_TOKEN_BYTES = 32 * 1024
/** Types of other tokens that an issuer may sign for the same audience. */
const otherTypes = ['at+jwt', 'dpop+jwt', 'oauth-id-jag+jwt', 'logout+jwt']

const invalid = (reason: string) => new Refusal(400, 'invalid_request', reason)

const refusals: Record<TokenFault, (reason: string) => Refusal> = {
  unreadable: invalid,
  untrusted: (reason) => new Refusal(400, 'invalid_issuer', reason),
  unreachable: (reason) => new Refusal(500, 'server_error', reason),
  invalid: (reason) => new Refusal(400, 'authentication_failed', reason),
}

/** The response does not reveal whether there is or was such an agent. */
async function notify(call: RouteCall<null>): Promise<Response> {
  const { ctx, body } = call
  if (body.contentType !== null && body.contentType !== EVENT_TOKEN)
    throw invalid(`The body must be of type ${EVENT_TOKEN}`)
  const token = await verifyIssuerToken(ctx, (await body.text(MAX_TOKEN_BYTES)).trim(), otherTypes)
  if (!token.ok) throw refusals[token.fault](token.reason)
  await endAgentOf(call, token.issuer, subjectOf(token.claims))
  return new Response(null, { status: 202 })
}

/** Returns the subject whose agent the event ends. Throws `invalid_request` if the token is not such an event. */
function subjectOf({ iat, jti, events, sub }: Claims): string {
  if (!isTime(iat) || typeof jti !== 'string' || jti === '') throw invalid('iat or jti is missing')
  const event = hasMembers(events) && Object.hasOwn(events, ASSERTION_REVOKED) ? events[ASSERTION_REVOKED] : null
  if (!hasMembers(event)) throw invalid(`events does not contain ${ASSERTION_REVOKED}`)
  const { subject } = event
  const [found] = [sub, subject, membersOf(subject)['sub']].filter(isNonEmptyText)
  if (found === undefined) throw invalid('The event names no subject')
  return found
}

const isNonEmptyText = (value: unknown): value is string => typeof value === 'string' && value !== ''

/** Ends only what this issuer has registered: a child has a subject too, which its account has chosen. */
async function endAgentOf({ ctx }: RouteCall<null>, issuer: string, subject: string): Promise<void> {
  await ctx.db.transaction(async (tx) => {
    const registration = await findRegistrationOfSubject(tx, issuer, subject)
    if (registration?.type !== 'identity_assertion') return
    const ended = await endRegistration(tx, registration, ctx.clock.now(), { source: 'provider_set' })
    if (ended > 0 && registration.did) await announceIn(tx, { ctx }, 'agentEndedByProvider', registration.did)
  })
}

export const providerEventRoutes = [route('POST', '/agent/event/notify', { handler: notify })]
