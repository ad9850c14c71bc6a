/**
 * Assertions by which trusted issuers vouch for agents (ID-JAG).
 *
 * Source: draft-ietf-oauth-identity-assertion-authz-grant.
 */
import { createHash } from 'node:crypto'
import type { Context } from '../../../platform/context.ts'
import { useOnce } from '../../access/tokens/tokens.ts'
import { isTime, LEEWAY_SECS, secsNow, verifyIssuerToken, type Claims, type TokenFault } from './issuer-tokens.ts'

export type VerifiedIdentity =
  | {
      ok: true
      issuer: string
      /** The provider's name for the person for whom the agent acts. */
      subject: string
      /** In lower case; null if the provider does not say, or says that it is not verified. */
      email: string | null
    }
  | {
      ok: false
      status: number
      error: 'invalid_grant' | 'issuer_not_enabled' | 'login_required' | 'server_error'
      reason: string
    }

/** Types of other tokens that an issuer may sign for the same audience. */
const otherTypes = ['at+jwt', 'dpop+jwt', 'secevent+jwt', 'logout+jwt']

/** How far the issuer's clock may be ahead when it issues an assertion. */
const MAX_AHEAD_SECS = 120
/** OpenID Connect Core, section 2: no subject is longer. */
const MAX_SUBJECT_CHARS = 255

const refusals: Record<TokenFault, { status: number; error: Extract<VerifiedIdentity, { ok: false }>['error'] }> = {
  unreadable: { status: 400, error: 'invalid_grant' },
  untrusted: { status: 403, error: 'issuer_not_enabled' },
  unreachable: { status: 500, error: 'server_error' },
  invalid: { status: 401, error: 'invalid_grant' },
}

const invalid = (reason: string): VerifiedIdentity => ({ ok: false, ...refusals.invalid, reason })

/**
 * Verify an assertion, and use it up: each assertion is accepted once. Throws `LookupsFull` when too many names are
 * being looked up.
 */
export async function verifyIdentityAssertion(ctx: Context, text: string): Promise<VerifiedIdentity> {
  const token = await verifyIssuerToken(ctx, text, otherTypes)
  if (!token.ok) return { ok: false, ...refusals[token.fault], reason: token.reason }
  const { issuer, claims } = token
  const { sub, exp, iat, jti } = claims
  const now = secsNow(ctx)
  if (!isTime(exp)) return invalid('exp is missing')
  if (!isSubject(sub)) return invalid('sub is missing or too long')
  if (iat !== undefined && !(isTime(iat) && iat <= now + MAX_AHEAD_SECS))
    return invalid('iat is not a time, or in the future')
  if (jti !== undefined && (typeof jti !== 'string' || jti === '')) return invalid('jti is not a string')
  const signIn = faultOfSignIn(ctx, claims, now)
  if (signIn !== null) return signIn
  // Without `jti`, the signed text is the id. The signature is left out, because it can be spelled in other ways.
  const id = digest([issuer, jti ?? null, jti === undefined ? text.slice(0, text.lastIndexOf('.')) : null])
  const expiresAt = (Math.ceil(exp) + LEEWAY_SECS + 1) * 1000
  if (!(await useOnce(ctx.db, 'identity-assertion', id, expiresAt)))
    return invalid('The assertion has already been used')
  return { ok: true, issuer, subject: sub, email: verifiedEmail(claims) }
}

const digest = (value: unknown): string => createHash('sha256').update(JSON.stringify(value)).digest('base64url')

/** Whether a subject can be stored and shown. */
const isSubject = (sub: unknown): sub is string =>
  typeof sub === 'string' && sub !== '' && sub.length <= MAX_SUBJECT_CHARS && sub.isWellFormed() && !/\p{Cc}/u.test(sub)

/** Returns the refusal if the person's sign-in at the issuer is too old. There is no leeway. */
function faultOfSignIn({ config }: Context, { auth_time: authTime }: Claims, now: number): VerifiedIdentity | null {
  if (authTime === undefined) return null
  if (!isTime(authTime)) return invalid('auth_time is not a time')
  if (now - authTime <= config.agentAuth.authTimeMaxAgeSecs) return null
  return { ok: false, status: 401, error: 'login_required', reason: 'The sign-in at the issuer is too old' }
}

/**
 * Returns the address, unless the issuer says that it is not verified. Accepts only ASCII before it converts to lower
 * case, because other letters may turn into those of another person's address.
 */
function verifiedEmail({ email, email_verified: isVerified }: Claims): string | null {
  if (typeof email !== 'string' || (isVerified !== undefined && isVerified !== true)) return null
  const address = email.trim()
  return /^[\x21-\x7e]+$/.test(address) ? address.toLowerCase() : null
}
