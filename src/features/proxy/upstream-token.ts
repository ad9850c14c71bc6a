/** Tokens that let another service act for an account. */
import { randomBytes } from 'node:crypto'
import type { Context } from '../../platform/context.ts'
import type { Did } from '../../protocol/identifiers.ts'
import { formatServiceToken } from '../../protocol/service-token.ts'
import { accountNotFound, signingKeyOf } from '../accounts/accounts.ts'

const TTL_SECS = 60

export interface TokenSubject {
  iss: Did
  /** The bare DID of the service. */
  aud: Did
  lxm: string
}

/** A token for one service and one method, signed with the account's repository key. */
export async function upstreamToken(ctx: Context, subject: TokenSubject): Promise<string> {
  const key = await signingKeyOf(ctx, ctx.db, subject.iss)
  if (key === null) throw accountNotFound()
  const iat = Math.floor(ctx.clock.now() / 1000)
  return formatServiceToken(key, { iat, ...subject, exp: iat + TTL_SECS, jti: randomBytes(16).toString('hex') })
}
