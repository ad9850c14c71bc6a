/** New opaque tokens. */
import { randomBytes } from 'node:crypto'
import { formatOpaqueToken, OPAQUE_TOKEN_BYTES, opaqueTokenHash } from '../../protocol/opaque-token.ts'

/**
 * Returns a new opaque token, and its hash, which is all that is stored of it. No token begins with a hyphen: people
 * pass some of them to commands, which would take that for an option.
 */
export function newToken(): { token: string; hash: string } {
  for (;;) {
    const token = formatOpaqueToken(randomBytes(OPAQUE_TOKEN_BYTES))
    if (!token.startsWith('-')) return { token, hash: opaqueTokenHash(token)! }
  }
}
