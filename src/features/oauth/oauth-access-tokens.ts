/**
 * Access tokens: ES256 JWTs of the type `at+jwt` that the service issues to itself (RFC 9068). A session of the
 * service has the same type under HS256, so the algorithm tells the two apart before any key is chosen.
 */
import { randomBytes } from 'node:crypto'
import { perContext, type Context } from '../../platform/context.ts'
import { BoundedCache } from '../../base/bounded-cache.ts'
import { parseDid, type Did } from '../../protocol/identifiers.ts'
import { accessTokenHash } from '../../protocol/dpop.ts'
import { decodeJws, decodeObject, signJws, verifyJws } from '../../protocol/jws.ts'
import { serverKey } from './server-key.ts'

const ACCESS_TOKEN_TYPE = 'at+jwt'

export interface AccessToken {
  did: Did
  scope: string
  tokenId: string
  issuedAtSecs: number
  expiresAtSecs: number
  /** Thumbprint of the key that every request must be signed with; null for a token that is worth something by itself. */
  jkt: string | null
  /** What a proof says of this token. */
  hash: string
  /** All claims, for what one kind of token has and others have not. */
  claims: Readonly<Record<string, unknown>>
}

export type ReadOutcome = { ok: true; token: AccessToken } | { ok: false; fault: 'unverifiable' | 'expired'; token: AccessToken | null }

/** Issue a token with the standard claims and those given. */
export async function issueOAuthAccessToken(
  ctx: Context,
  { expiresAtSecs, ...claims }: { sub: Did; scope: string; expiresAtSecs: number } & Record<string, unknown>,
): Promise<string> {
  const key = await serverKey(ctx)
  return signJws(
    key,
    { typ: ACCESS_TOKEN_TYPE, kid: key.kid },
    {
      iss: ctx.config.publicUrl,
      aud: ctx.config.serverDid,
      iat: Math.floor(ctx.clock.now() / 1000),
      exp: expiresAtSecs,
      jti: randomBytes(16).toString('base64url'),
      ...claims,
    },
  )
}

/** Whether a token claims to be of this kind. Says nothing about its worth. */
export function claimsToBeAccessToken(token: string): boolean {
  const header = decodeObject(token.slice(0, Math.max(0, token.indexOf('.'))))
  return header?.alg === 'ES256' && header.typ === ACCESS_TOKEN_TYPE
}

/** Check signature, issuer, audience and time. An expired token is answered along with its fault. */
export async function readOAuthAccessToken(ctx: Context, text: string): Promise<ReadOutcome> {
  const known = verifiedTokens(ctx)
  let token = known.get(text) ?? null
  if (token === null) {
    token = await verified(ctx, text)
    if (token === null) return { ok: false, fault: 'unverifiable', token: null }
    known.set(text, token)
  }
  if (ctx.clock.now() >= token.expiresAtSecs * 1000) return { ok: false, fault: 'expired', token }
  return { ok: true, token }
}

async function verified(ctx: Context, text: string): Promise<AccessToken | null> {
  const jws = decodeJws(text)
  if (jws?.header.typ !== ACCESS_TOKEN_TYPE || !verifyJws(jws, (await serverKey(ctx)).publicKey)) return null
  const { iss, aud, sub, scope, jti, iat, exp, cnf } = jws.payload
  const did = typeof sub === 'string' ? parseDid(sub) : null
  if (iss !== ctx.config.publicUrl || (aud !== ctx.config.serverDid && aud !== ctx.config.publicUrl) || did === null) return null
  if (typeof scope !== 'string' || typeof jti !== 'string' || typeof iat !== 'number' || typeof exp !== 'number') return null
  const jkt = (cnf as { jkt?: unknown } | undefined)?.jkt
  return {
    did,
    scope,
    tokenId: jti,
    issuedAtSecs: iat,
    expiresAtSecs: exp,
    jkt: typeof jkt === 'string' ? jkt : null,
    hash: accessTokenHash(text),
    claims: jws.payload,
  }
}

/** Tokens that are remembered: an app sends the same one many times, and its signature does not change. */
const MAX_VERIFIED_TOKENS = 20_000

const verifiedTokens = perContext(() => new BoundedCache<AccessToken>(MAX_VERIFIED_TOKENS))
