/**
 * Service tokens, which authenticate an account to another service.
 *
 * Source: atproto "HTTP API (XRPC)", "Inter-Service Authentication (JWT)".
 */
import { randomBytes } from 'node:crypto'
import type { Context } from '../../platform/context.ts'
import type { Did } from '../../protocol/identifiers.ts'
import { formatServiceToken } from '../../protocol/service-token.ts'
import { accountSigner, refuseMissing, refuseTakendown } from '../accounts/accounts.ts'

const TTL_SECS = 60

export interface TokenSubject {
  iss: Did
  /** The bare DID of the service. */
  aud: Did
  lxm: string
  /** Also issue the token for an account that was taken down, so that its holder can appeal to the moderators. */
  appeals?: boolean
}

/**
 * Returns a token for one service and one method, signed with the account's signing key and valid for a minute. Throws
 * `AccountNotFound` if the account is gone, and `AccountTakedown` if it was taken down and `appeals` is not set.
 */
export async function upstreamToken(ctx: Context, { appeals = false, ...subject }: TokenSubject): Promise<string> {
  const signer = await accountSigner(ctx, ctx.db, subject.iss)
  const status = signer?.status ?? null
  if (appeals) refuseMissing(status)
  else refuseTakendown(status)
  const iat = Math.floor(ctx.clock.now() / 1000)
  return formatServiceToken(signer!.key, { iat, ...subject, exp: iat + TTL_SECS, jti: randomBytes(16).toString('hex') })
}
