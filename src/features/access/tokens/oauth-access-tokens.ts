/**
 * Access tokens of OAuth: JWTs of the type `at+jwt` (RFC 9068), signed with ES256. This server issues and accepts them.
 * The access tokens of password sessions have the same type but are signed with HS256, so `alg` distinguishes the two
 * before a key is chosen.
 */
import { randomBytes } from 'node:crypto'
import { isOwnDid, isOwnOrigin } from '../../../platform/configuration/service-names.ts'
import { perContext, type Context } from '../../../platform/context.ts'
import { BoundedCache } from '../../../base/bounded-cache.ts'
import { parseDid, type Did } from '../../../protocol/identifiers.ts'
import { accessTokenHash } from '../../../protocol/dpop.ts'
import { decodeJws, decodeObject, signJws, verifyJws } from '../../../protocol/jws.ts'
import { serverKey } from './server-key.ts'

const ACCESS_TOKEN_TYPE = 'at+jwt'

export interface AccessToken {
  did: Did
  scope: string
  tokenId: string
  expiresAtSecs: number
  /**
   * Thumbprint of the DPoP key that the token is bound to (RFC 9449, 6.1); null for a token that is not bound to a key.
   */
  jkt: string | null
  /** The `ath` that a DPoP proof must have for this token. RFC 9449, 4.2. */
  hash: string
  /** All claims, including those that only some kinds of tokens have. */
  claims: Readonly<Record<string, unknown>>
}

export type ReadOutcome =
  { ok: true; token: AccessToken } | { ok: false; fault: 'unverifiable' | 'expired'; token: AccessToken | null }

/** Issue a token with the standard claims and those given. `expiresAtSecs` is a time in Unix seconds. RFC 9068, 2.2. */
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

/** A token is sent with every request, and proxies accept headers of 8 kB. */
export const MAX_ACCESS_TOKEN_CHARS = 8000
/** The header, the signature, and the claims whose length neither the account nor the client affects. */
const FIXED_TOKEN_CHARS = 700
/** `did:web:` and the longest host. */
const MAX_SUBJECT_CHARS = 261

/** Whether the tokens of a client stay within `MAX_ACCESS_TOKEN_CHARS` with this scope, for every account. */
export function fitsAccessToken(
  { config }: Context,
  { clientId, scope }: { clientId: string; scope: string },
): boolean {
  const { publicUrl: iss, serverDid: aud } = config
  const claimBytes = Buffer.byteLength(JSON.stringify({ iss, aud, client_id: clientId, scope })) + MAX_SUBJECT_CHARS
  return Math.ceil((claimBytes * 4) / 3) + FIXED_TOKEN_CHARS <= MAX_ACCESS_TOKEN_CHARS
}

/** Whether the header says that the text is such a token. Verifies nothing. */
export function claimsToBeAccessToken(token: string): boolean {
  const header = decodeObject(token.slice(0, Math.max(0, token.indexOf('.'))))
  return header?.alg === 'ES256' && header.typ === ACCESS_TOKEN_TYPE
}

/**
 * Check the signature, issuer, audience and expiry of a token. Never throws on bad input. If the fault is `expired`,
 * the token is returned too; if it is `unverifiable`, `token` is null. Does not check the session or the DPoP proof.
 *
 * Source: RFC 9068, section 4.
 */
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
  const { config } = ctx
  if (!isOwnOrigin(config, iss) || !(isOwnDid(config, aud) || isOwnOrigin(config, aud)) || did === null) return null
  if (typeof scope !== 'string' || typeof jti !== 'string' || typeof iat !== 'number' || typeof exp !== 'number')
    return null
  const jkt = (cnf as { jkt?: unknown } | undefined)?.jkt
  return {
    did,
    scope,
    tokenId: jti,
    expiresAtSecs: exp,
    jkt: typeof jkt === 'string' ? jkt : null,
    hash: accessTokenHash(text),
    claims: jws.payload,
  }
}

/**
 * Total length of all cached tokens. An app sends the same token many times, but its signature needs to be verified
 * only once.
 */
const MAX_VERIFIED_CHARS = 16 * 1024 ** 2

const verifiedTokens = perContext(() => new BoundedCache<AccessToken>(MAX_VERIFIED_CHARS, (text) => text.length))
