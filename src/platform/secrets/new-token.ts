/** Fresh opaque tokens. */
import { randomBytes } from 'node:crypto'
import { formatOpaqueToken, OPAQUE_TOKEN_BYTES, opaqueTokenHash } from '../../protocol/opaque-token.ts'

/** A new opaque token, and what is stored of it. */
export function newToken(): { token: string; hash: string } {
  const token = formatOpaqueToken(randomBytes(OPAQUE_TOKEN_BYTES))
  return { token, hash: opaqueTokenHash(token)! }
}
