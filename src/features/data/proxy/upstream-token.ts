/**
 * Service tokens, which authenticate an account to another service.
 *
 * Signing a token costs as much as any other part of a forwarded request. A token for a query to a configured service
 * is therefore kept for half a minute and presented again, for the same account, service and method only. Account and
 * caller are checked for each request nevertheless.
 *
 * A service may accept the id of a token (`jti`) only once. If a service refuses a reused token and accepts a new one,
 * it gets a new token for each request of the next hour.
 *
 * Source: atproto "HTTP API (XRPC)", "Inter-Service Authentication (JWT)".
 */
import { randomBytes } from 'node:crypto'
import { BoundedCache } from '../../../base/bounded-cache.ts'
import { HOUR_MILLIS } from '../../../base/durations.ts'
import { perContext, type Context } from '../../../platform/context.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'
import type { SigningKey } from '../../../protocol/keys.ts'
import { formatServiceToken } from '../../../protocol/service-token.ts'
import { accountSigner, type FoundSigner } from '../../identity/account-keys/account-keys.ts'
import { refuseMissing, refuseTakendown } from '../../identity/accounts/accounts.ts'
import { requireValid, type Revalidation } from '../../../http/revalidation.ts'

const TTL_SECS = 60
/** How long a token is reused. The rest of its life allows for slow requests and for clocks that are ahead. */
const KEPT_SECS = 30
/** Total characters of the kept tokens with their cache keys. One has about 500. */
const MAX_KEPT_CHARS = 4 * 1024 ** 2
const PRESENTED_ONCE_MILLIS = HOUR_MILLIS

export interface TokenSubject {
  iss: Did
  /** The bare DID of the service. */
  aud: Did
  lxm: string
  /** Also issue the token for an account that was taken down, so that its holder can appeal to the moderators. */
  appeals?: boolean
  /** Revalidates the caller. */
  revalidation: Revalidation | null
  /** The signer of the account, if it was read for this request with `revalidation`. */
  signer?: FoundSigner | null
  /** Whether the token may be reused: for services that the operator configured. */
  mayKeep: boolean
}

export interface UpstreamToken {
  readonly text: string
  readonly aud: Did
  /** Number of requests that were given it. */
  requests: number
  /** Whether the service has refused it as a reused token. It is not used again. */
  isRefused: boolean
}

interface KeptToken extends UpstreamToken {
  readonly key: SigningKey
  /** Seconds. */
  readonly iat: number
}

const keptTokens = perContext(
  () => new BoundedCache<KeptToken>(MAX_KEPT_CHARS, (subject, { text }) => subject.length + text.length),
)

/**
 * Services that accept a token only once, each with the time until which it gets no reused ones, on the monotonic
 * clock.
 */
const acceptingOnce = perContext(() => new Map<Did, Millis>())

/**
 * Returns a token for one service and one method, signed with the account's signing key and valid for at least half a
 * minute. Throws `AccountNotFound` if there is no such account, `AccountTakedown` if it was taken down and `appeals` is
 * not set, and the refusal of a caller whose access has ended.
 */
export async function upstreamToken(ctx: Context, subject: TokenSubject): Promise<UpstreamToken> {
  const { iss, aud, lxm, appeals = false, revalidation } = subject
  const signer = subject.signer ?? (await accountSigner(ctx, ctx.db, iss, revalidation))
  const status = signer?.status ?? null
  if (appeals) refuseMissing(status)
  else refuseTakendown(status)
  requireValid(revalidation, signer!)
  const { key } = signer!
  const iat = Math.floor(ctx.clock.now() / 1000)
  const name = `${iss} ${aud} ${lxm}`
  const kept = subject.mayKeep ? keptTokens(ctx).get(name) : undefined
  const isFresh = kept !== undefined && kept.key === key && kept.iat <= iat && iat < kept.iat + KEPT_SECS
  const acceptsOnce = (acceptingOnce(ctx).get(aud) ?? 0) > ctx.clock.monotonic()
  if (isFresh && !kept.isRefused && !acceptsOnce) {
    kept.requests++
    return kept
  }
  const jti = randomBytes(16).toString('hex')
  const text = formatServiceToken(key, { iat, iss, aud, lxm, exp: iat + TTL_SECS, jti })
  const token = { text, aud, requests: 1, isRefused: false, key, iat }
  if (subject.mayKeep && !isFresh && !acceptsOnce) keptTokens(ctx).set(name, token)
  return token
}

/** Note that a service has refused a reused token and accepted a new one. */
export function noteAcceptsOnce(ctx: Context, aud: Did): void {
  acceptingOnce(ctx).set(aud, ctx.clock.monotonic() + PRESENTED_ONCE_MILLIS)
}
