/** Tokens that let another service act for an account. */
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
  /** Also of an account that was taken down: its holder turns to the moderators. */
  appeals?: boolean
}

/**
 * A token for one service and one method, signed with the account's repository key. Whatever session asks, nobody
 * speaks for an account that is gone, nor, except to appeal, for one that was taken down.
 */
export async function upstreamToken(ctx: Context, { appeals = false, ...subject }: TokenSubject): Promise<string> {
  const signer = await accountSigner(ctx, ctx.db, subject.iss)
  const status = signer?.status ?? null
  if (appeals) refuseMissing(status)
  else refuseTakendown(status)
  const iat = Math.floor(ctx.clock.now() / 1000)
  return formatServiceToken(signer!.key, { iat, ...subject, exp: iat + TTL_SECS, jti: randomBytes(16).toString('hex') })
}
