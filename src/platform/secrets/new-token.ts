/** New opaque tokens. */
import { randomBytes } from 'node:crypto'
import { formatOpaqueToken, OPAQUE_TOKEN_BYTES, opaqueTokenHash } from '../../protocol/opaque-token.ts'

/** Returns a new opaque token, and its hash, which is all that is stored of it. */
export function newToken(): { token: string; hash: string } {
  const token = formatOpaqueToken(randomBytes(OPAQUE_TOKEN_BYTES))
  return { token, hash: opaqueTokenHash(token)! }
}
