/**
 * Session tokens: HS256 JWTs that the service issues to itself.
 *
 * Only tokens with exactly one of our two headers are read, so the caller chooses neither algorithm nor type. The
 * reference implementation writes the same headers. If accounts have moved here from one, its refresh tokens are read
 * too, and its access tokens count as expired, whatever they say (`former-issuers.ts`). Access tokens live for two
 * hours. Both kinds name their session and are worth nothing without its row (`session-store.ts`).
 */
import { createHmac, createSecretKey, timingSafeEqual, type KeyObject } from 'node:crypto'
import { DAY_SECS } from '../../../base/durations.ts'
import { expiredToken, invalidToken } from '../../../http/errors.ts'
import { isOwnDid } from '../../../platform/configuration/service-names.ts'
import { perContext, type Context } from '../../../platform/context.ts'
import { BoundedCache } from '../../../base/bounded-cache.ts'
import { serverSecret } from '../../../platform/secrets/vault.ts'
import { parseDid, type Did, type Millis } from '../../../protocol/identifiers.ts'
import { encodeObject } from '../../../protocol/jws.ts'
import type { SessionKind } from '../callers/callers.ts'
import { formerKeys } from './former-issuers.ts'

const ACCESS_TTL_SECS = 120 * 60
export const REFRESH_TTL_SECS = 90 * DAY_SECS

const scopes: Record<SessionKind, string> = {
  full: 'com.atproto.access',
  privileged: 'com.atproto.appPassPrivileged',
  app: 'com.atproto.appPass',
  scoped: 'com.atproto.appPassScoped',
  takendown: 'com.atproto.takendown',
}
const kinds = new Map(Object.entries(scopes).map(([kind, scope]) => [scope, kind as SessionKind]))
const REFRESH_SCOPE = 'com.atproto.refresh'

const ACCESS_HEADER = encodeObject({ typ: 'at+jwt', alg: 'HS256' })
const REFRESH_HEADER = encodeObject({ typ: 'refresh+jwt', alg: 'HS256' })

export interface AccessClaims {
  did: Did
  sessionId: string
  kind: SessionKind
  /** Whether the app password grants access to the birth date. */
  personalDetails: boolean
  /** The scopes of a `scoped` session. Other kinds have none. */
  scope?: string
}

export interface RefreshClaims {
  did: Did
  /** 32 bytes in base64. */
  tokenId: string
}

interface Payload {
  scope: string
  aud: string
  sub: string
  iat: number
  exp: number
  jti?: string
  sid?: string
  personal_details?: true
  grants?: string
}

type Fault = 'unverifiable' | 'expired'

interface VerifiedToken {
  answer: ({ ok: true } & AccessClaims) | { ok: false; fault: 'expired' }
  expiresAt: Millis
}

/**
 * Total length of all cached access tokens, with their scopes. The signature of a cached token is not verified again. A
 * token of an app password with scopes may have thousands of characters.
 */
const MAX_VERIFIED_CHARS = 16 * 1024 ** 2

/**
 * A verified signature stays valid while the server runs, because its key never changes. Expiry is checked on every
 * use.
 */
const verifiedTokens = perContext(
  () =>
    new BoundedCache<VerifiedToken>(
      MAX_VERIFIED_CHARS,
      (token, { answer }) => token.length + (answer.ok ? (answer.scope?.length ?? 0) : 0),
    ),
)

/** The signing key, read once at start. */
export const sessionTokenKey = perContext(async (ctx) =>
  createSecretKey(await serverSecret(ctx.db, ctx.vault, 'session-token')),
)

/** `endsAt`: the token expires at this time at the latest; null for no such bound. */
export async function issueAccessToken(
  ctx: Context,
  { did, sessionId, kind, personalDetails, scope }: AccessClaims,
  endsAt: Millis | null = null,
): Promise<string> {
  const times = lifetime(ctx.clock.now(), ACCESS_TTL_SECS, endsAt)
  return issue(ACCESS_HEADER, await sessionTokenKey(ctx), {
    scope: scopes[kind],
    aud: ctx.config.serverDid,
    sub: did,
    sid: sessionId,
    ...times,
    ...(personalDetails ? { personal_details: true as const } : {}),
    ...(scope === undefined ? {} : { grants: scope }),
  })
}

export async function issueRefreshToken(
  ctx: Context,
  { did, tokenId }: RefreshClaims,
  endsAt: Millis | null = null,
): Promise<string> {
  const times = lifetime(ctx.clock.now(), REFRESH_TTL_SECS, endsAt)
  return issue(REFRESH_HEADER, await sessionTokenKey(ctx), {
    scope: REFRESH_SCOPE,
    aud: ctx.config.serverDid,
    sub: did,
    ...times,
    jti: tokenId,
  })
}

/** The claims of an access token, or why it is refused. */
export type ReadToken = ({ ok: true } & AccessClaims) | { ok: false; fault: Fault }

/** Returns the claims of an access token: as a promise, unless the token was read before. Never throws on bad input. */
export function readAccessToken(ctx: Context, token: string): ReadToken | Promise<ReadToken> {
  const read = verifiedTokens(ctx).get(token)
  return read === undefined ? readFirst(ctx, token) : unlessExpired(ctx, read)
}

async function readFirst(ctx: Context, token: string): Promise<ReadToken> {
  const read = verifiedToken(open(ctx, await sessionTokenKey(ctx), ACCESS_HEADER, token))
  if (read === null)
    return { ok: false, fault: (await formerKeyOf(ctx, ACCESS_HEADER, token)) ? 'expired' : 'unverifiable' }
  verifiedTokens(ctx).set(token, read)
  return unlessExpired(ctx, read)
}

const unlessExpired = ({ clock }: Context, { answer, expiresAt }: VerifiedToken): ReadToken =>
  clock.now() < expiresAt ? answer : { ok: false, fault: 'expired' }

function verifiedToken(read: Opened): VerifiedToken | null {
  if (!read.ok) return null
  const { sub, sid, scope, exp, personal_details: personalDetails, grants } = read.payload
  const did = parseDid(sub)
  const kind = kinds.get(scope)
  if (did === null || kind === undefined || (kind === 'scoped') !== (grants !== undefined)) return null
  // A token of version 0.1.0 names no session, and counts as expired. Its client gets another with the refresh token.
  if (sid === undefined) return { answer: { ok: false, fault: 'expired' }, expiresAt: exp * 1000 }
  return {
    answer: {
      ok: true,
      did,
      sessionId: sid,
      kind,
      personalDetails: personalDetails === true,
      ...(grants !== undefined && { scope: grants }),
    },
    expiresAt: exp * 1000,
  }
}

/** Returns the claims of a refresh token, even an expired one, which may still end its session; or the fault. */
export async function readRefreshToken(
  ctx: Context,
  token: string,
): Promise<({ ok: true; expired: boolean } & RefreshClaims) | { ok: false; fault: Fault }> {
  const own = open(ctx, await sessionTokenKey(ctx), REFRESH_HEADER, token)
  const formerKey = own.ok ? null : await formerKeyOf(ctx, REFRESH_HEADER, token)
  const read = formerKey === null ? own : open(ctx, formerKey, REFRESH_HEADER, token)
  if (!read.ok) return read
  const did = parseDid(read.payload.sub)
  const { jti, scope } = read.payload
  if (did === null || jti === undefined || scope !== REFRESH_SCOPE) return { ok: false, fault: 'unverifiable' }
  return { ok: true, expired: read.expired, did, tokenId: jti }
}

/** Returns the claims of an accepted token. Throws `ExpiredToken` or `InvalidToken` otherwise. */
export function acceptedToken<Read extends { ok: true }>(read: Read | { ok: false; fault: Fault }): Read {
  if (read.ok) return read
  throw read.fault === 'expired' ? expiredToken('Token has expired') : invalidToken('Token could not be verified')
}

function lifetime(now: Millis, ttlSecs: number, endsAt: Millis | null): { iat: number; exp: number } {
  const iat = Math.floor(now / 1000)
  return { iat, exp: Math.min(iat + ttlSecs, endsAt === null ? Infinity : Math.floor(endsAt / 1000)) }
}

const mac = (key: KeyObject, signed: string) => createHmac('sha256', key).update(signed).digest()

function issue(header: string, key: KeyObject, payload: Payload): string {
  const signed = `${header}.${encodeObject(payload)}`
  return `${signed}.${mac(key, signed).toString('base64url')}`
}

type Opened = { ok: true; payload: Payload; expired: boolean } | { ok: false; fault: 'unverifiable' }

/**
 * Returns the key of the server that signed a token, if accounts have moved here from it; null if no such server did.
 */
const formerKeyOf = async (ctx: Context, header: string, token: string): Promise<KeyObject | null> =>
  (await formerKeys(ctx)).find((key) => isSealed(key, header, token)) ?? null

function isSealed(key: KeyObject, header: string, token: string): boolean {
  const end = token.lastIndexOf('.')
  if (!token.startsWith(`${header}.`) || end <= header.length) return false
  const given = Buffer.from(token.slice(end + 1), 'base64url')
  const expected = mac(key, token.slice(0, end))
  return given.length === expected.length && timingSafeEqual(given, expected)
}

function open(ctx: Context, key: KeyObject, header: string, token: string): Opened {
  const unverifiable = { ok: false, fault: 'unverifiable' } as const
  if (!isSealed(key, header, token)) return unverifiable
  const end = token.lastIndexOf('.')
  // A valid signature means that `issue` wrote the payload, or the reference implementation in the same form: it needs
  // no validation.
  const payload = JSON.parse(Buffer.from(token.slice(header.length + 1, end), 'base64url').toString()) as Payload
  if (!isOwnDid(ctx.config, payload.aud)) return unverifiable
  return { ok: true, payload, expired: ctx.clock.now() >= payload.exp * 1000 }
}
