/**
 * The tokens of agents, signed with the key of the OAuth server.
 *
 * An assertion says who the agent is, for an hour; the token endpoint exchanges it for access tokens of five minutes.
 * Both have the same issuer, audience and subject, and differ in `typ` and `registration_type`: if an access token
 * counted as an assertion, an agent could extend its access for ever.
 */
import { randomUUID } from 'node:crypto'
import { isOwnOrigin } from '../../../platform/configuration/service-names.ts'
import type { Context } from '../../../platform/context.ts'
import { base64url } from '../../../protocol/base64url.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'
import { decodeJws, signJws, verifyJws } from '../../../protocol/jws.ts'
import { issueOAuthAccessToken, readOAuthAccessToken, serverKey, type ReadOutcome } from '../../access/tokens/tokens.ts'
import type { Registration } from './agent-registration-store.ts'
import { grantedScopeOf, type AgentGrantedScope } from './agent-granted-scope.ts'

export const AGENT_TOKEN_TTL_SECS = 300
const ASSERTION_TYPE = 'JWT'
/** The first characters of every JWT whose header begins with `{"alg":"ES256"`, as those of this server do. */
const ES256_PREFIX = 'eyJhbGciOiJFUzI1NiI'

interface Assertion {
  /** The DID of the account; before the registration is confirmed, the registration's id. */
  subject: string
  scopes: readonly string[]
}

/** When an assertion that is issued now expires: a whole second. */
export const assertionExpiry = ({ config, clock }: Context): Millis =>
  (Math.floor(clock.now() / 1000) + config.agentAuth.assertionTtlSecs) * 1000

/** Returns an assertion of a registration that expires at a time from `assertionExpiry`. */
export async function issueAssertion(
  ctx: Context,
  { id, type }: Pick<Registration, 'id' | 'type'>,
  { subject, scopes, expiresAt }: Assertion & { expiresAt: Millis },
): Promise<string> {
  const { config } = ctx
  const key = await serverKey(ctx)
  const exp = Math.floor(expiresAt / 1000)
  return signJws(
    key,
    { kid: key.kid, typ: ASSERTION_TYPE },
    {
      iss: config.publicUrl,
      aud: config.publicUrl,
      sub: subject,
      iat: exp - config.agentAuth.assertionTtlSecs,
      exp,
      jti: randomUUID(),
      scope: scopes.join(' '),
      registration_id: id,
      registration_type: type,
    },
  )
}

/**
 * Returns the assertion if this server made it and it has not expired, else null. Does not look at the registration.
 */
export async function readAssertion(
  ctx: Context,
  text: string,
): Promise<(Assertion & { registrationId: string }) | null> {
  const jws = decodeJws(text)
  // Accept only one spelling of a signature: others would decode to the same bytes.
  if (jws === null || !text.endsWith(`.${base64url(jws.signature)}`)) return null
  if (jws.header.typ !== ASSERTION_TYPE || 'crit' in jws.header || !verifyJws(jws, (await serverKey(ctx)).publicKey))
    return null
  const { iss, aud, sub, exp, scope, registration_id: registrationId, registration_type: type } = jws.payload
  if (
    !isOwnOrigin(ctx.config, iss) ||
    !isOwnOrigin(ctx.config, aud) ||
    typeof exp !== 'number' ||
    ctx.clock.now() >= exp * 1000
  )
    return null
  if (
    typeof sub !== 'string' ||
    typeof scope !== 'string' ||
    typeof registrationId !== 'string' ||
    typeof type !== 'string'
  )
    return null
  const scopes = scope.split(' ').filter((one) => one !== '')
  return { subject: sub, registrationId, scopes }
}

/** Returns an access token for requests as this account. It is sent as `Bearer` and bound to no key. */
export const issueAgentToken = (
  ctx: Context,
  { did, registrationId, scopes }: { did: Did; registrationId: string; scopes: readonly string[] },
): Promise<string> =>
  issueOAuthAccessToken(ctx, {
    sub: did,
    aud: ctx.config.publicUrl,
    scope: scopes.join(' '),
    expiresAtSecs: Math.floor(ctx.clock.now() / 1000) + AGENT_TOKEN_TTL_SECS,
    jti: randomUUID(),
    registration_id: registrationId,
  })

/** Whether a token has the form of an agent's access token. Verifies nothing; other tokens have other prefixes. */
export function claimsToBeAgentToken(token: string): boolean {
  return token.startsWith(ES256_PREFIX) && typeof decodeJws(token)?.payload.registration_id === 'string'
}

/**
 * Returns what an agent's access token grants now, looked up at every request. `scope` is never wider than the
 * registration and the configuration allow. The fault is `revoked` if nothing is left, or if the agent may not act.
 */
export async function readAgentToken(
  ctx: Context,
  text: string,
): Promise<
  | ({ ok: true; did: Did; scope: string; tokenId: string; registrationId: string } & Omit<AgentGrantedScope, 'scopes'>)
  | { ok: false; fault: 'unverifiable' | 'expired' | 'revoked' }
> {
  const read: ReadOutcome = await readOAuthAccessToken(ctx, text)
  if (!read.ok) return { ok: false, fault: read.fault }
  const { did, scope, tokenId, jkt, claims } = read.token
  const { registration_id: registrationId } = claims
  if (jkt !== null || typeof registrationId !== 'string') return { ok: false, fault: 'unverifiable' }
  const granted = await grantedScopeOf(ctx, ctx.db, { registrationId, did }, scope.split(' '))
  if (granted === null) return { ok: false, fault: 'revoked' }
  const { scopes, ...rest } = granted
  return { ok: true, did, scope: scopes.join(' '), tokenId, registrationId, ...rest }
}
