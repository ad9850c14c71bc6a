/**
 * Service tokens, which authenticate an account to another service.
 *
 * Source: atproto "HTTP API (XRPC)", "Inter-Service Authentication (JWT)".
 */
import { randomBytes } from 'node:crypto'
import type { Context } from '../../../platform/context.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { formatServiceToken } from '../../../protocol/service-token.ts'
import { accountSigner } from '../../identity/account-keys/account-keys.ts'
import { refuseMissing, refuseTakendown } from '../../identity/accounts/accounts.ts'
import { requireValid, type Revalidation } from '../../../http/revalidation.ts'

const TTL_SECS = 60

export interface TokenSubject {
  iss: Did
  /** The bare DID of the service. */
  aud: Did
  lxm: string
  /** Also issue the token for an account that was taken down, so that its holder can appeal to the moderators. */
  appeals?: boolean
  /** Revalidates the caller. */
  revalidation: Revalidation | null
}

/**
 * Returns a token for one service and one method, signed with the account's signing key and valid for a minute. Throws
 * `AccountNotFound` if the account is gone, `AccountTakedown` if it was taken down and `appeals` is not set, and the
 * refusal of a caller whose access has ended.
 */
export async function upstreamToken(
  ctx: Context,
  { appeals = false, revalidation, ...subject }: TokenSubject,
): Promise<string> {
  const signer = await accountSigner(ctx, ctx.db, subject.iss, revalidation)
  const status = signer?.status ?? null
  if (appeals) refuseMissing(status)
  else refuseTakendown(status)
  requireValid(revalidation, signer!)
  const iat = Math.floor(ctx.clock.now() / 1000)
  return formatServiceToken(signer!.key, { iat, ...subject, exp: iat + TTL_SECS, jti: randomBytes(16).toString('hex') })
}
