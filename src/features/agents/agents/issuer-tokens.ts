/**
 * Checks that all kinds of tokens of trusted issuers share.
 *
 * Nothing is fetched and no signature is verified unless the token names a trusted issuer, and the algorithm that the
 * configuration has for this issuer.
 */
import { isOwnOrigin } from '../../../platform/configuration/service-names.ts'
import type { TrustedIssuer } from '../../../platform/configuration/trusted-issuers.ts'
import type { Context } from '../../../platform/context.ts'
import { base64url } from '../../../protocol/base64url.ts'
import { verifyForeignJws } from '../../../protocol/foreign-jws.ts'
import { decodeJws } from '../../../protocol/jws.ts'
import { keysOfIssuer } from './issuer-keys.ts'

/** Seconds by which clocks may differ. */
export const LEEWAY_SECS = 60

/** Latest time that a `Date` can express. Numbers beyond it are not times. */
const MAX_SECS = 8.64e12

/**
 * `unreadable`: not a JWT, or without `iss`. `untrusted`: by another issuer. `unreachable`: the issuer's keys cannot be
 * read.
 */
export type TokenFault = 'unreadable' | 'untrusted' | 'unreachable' | 'invalid'

export type Claims = Readonly<Record<string, unknown>>

export type TokenOutcome =
  { ok: true; issuer: string; claims: Claims } | { ok: false; fault: TokenFault; reason: string }

/** Whole seconds, as times in tokens are. */
export const secsNow = ({ clock }: Pick<Context, 'clock'>): number => Math.floor(clock.now() / 1000)

export const isTime = (value: unknown): value is number => typeof value === 'number' && Math.abs(value) <= MAX_SECS

/**
 * Verify a token of a trusted issuer: signature, `aud`, and `exp` and `nbf` if it has them. `otherTypes` are the types
 * of tokens that the issuer signs for other purposes. Throws `LookupsFull` when too many names are being looked up.
 */
export async function verifyIssuerToken(
  ctx: Context,
  text: string,
  otherTypes: readonly string[],
): Promise<TokenOutcome> {
  // Decode an unsigned token too, so that it is refused for its algorithm.
  const jws = decodeJws(text.replace(/\.$/, '.AA'))
  const iss = jws?.payload['iss']
  if (jws === null || typeof iss !== 'string') return refuse('unreadable', 'The token is malformed or has no iss')
  const issuer = ctx.config.agentAuth.trustedIssuers.find((trusted) => trusted.issuer === iss)
  if (issuer === undefined) return refuse('untrusted', 'The issuer is not enabled on this server')
  const { alg, typ, kid } = jws.header
  if (alg !== issuer.algorithm) return refuse('invalid', `The token must be signed with ${issuer.algorithm}`)
  // Accept only one spelling of a signature: others would decode to the same bytes.
  if (!text.endsWith(`.${base64url(jws.signature)}`)) return refuse('invalid', 'The signature is not valid')
  if ('crit' in jws.header) return refuse('invalid', 'The token has extensions that are not supported')
  if (otherTypes.includes(mediaType(typ))) return refuse('invalid', 'The token is for another purpose')
  const found = await keysOfIssuer(ctx, issuer, kid)
  if (!found.ok) {
    if (found.fault === 'unreachable') return refuse('unreachable', "The issuer's keys cannot be read at the moment")
    return refuse('invalid', 'The issuer has no key with this kid')
  }
  const verified = await Promise.all(found.keys.map((key) => verifyForeignJws(text, key, issuer.algorithm)))
  if (!verified.includes(true)) return refuse('invalid', 'The signature is not valid')
  const reason = faultOfClaims(ctx, issuer, jws.payload)
  return reason === null ? { ok: true, issuer: iss, claims: jws.payload } : refuse('invalid', reason)
}

const refuse = (fault: TokenFault, reason: string): TokenOutcome => ({ ok: false, fault, reason })

/** A type may be written with `application/` or without. RFC 7515, 4.1.9. */
const mediaType = (typ: unknown): string =>
  String(typ)
    .toLowerCase()
    .replace(/^application\//, '')

function faultOfClaims(ctx: Context, { audience }: TrustedIssuer, { aud, exp, nbf }: Claims): string | null {
  const now = secsNow(ctx)
  const isAudience = (one: unknown) => (audience === null ? isOwnOrigin(ctx.config, one) : one === audience)
  if (![aud].flat().some(isAudience)) return 'aud is not this server'
  if (exp !== undefined && !(isTime(exp) && now <= exp + LEEWAY_SECS)) return 'The token has expired'
  if (nbf !== undefined && !(isTime(nbf) && now >= nbf - LEEWAY_SECS)) return 'The token is not valid yet'
  return null
}
