/**
 * Refresh tokens. The first half names the session, so that a token which was exchanged long ago still says whose it
 * was. The second half follows from the token before it, so that the same token gives the same successor to a client
 * that missed the answer or asked several times at once, without being stored.
 */
import { createHmac, randomBytes } from 'node:crypto'
import { perContext } from '../../platform/context.ts'
import { serverSecret } from '../../platform/secrets/vault.ts'
import { formatOpaqueToken, OPAQUE_TOKEN_BYTES, opaqueTokenHash, parseOpaqueToken } from '../../protocol/opaque-token.ts'

export const SESSION_ID_BYTES = 16
const SECRET_BYTES = OPAQUE_TOKEN_BYTES - SESSION_ID_BYTES

export interface RefreshToken {
  text: string
  hash: string
}

/** Read once, when the server starts. */
export const refreshSecret = perContext(({ db, vault }) => serverSecret(db, vault, 'oauth-refresh'))

const tokenOf = (sessionId: string, secret: Uint8Array): RefreshToken => {
  const text = formatOpaqueToken(Buffer.concat([Buffer.from(sessionId, 'hex'), secret]))
  return { text, hash: opaqueTokenHash(text)! }
}

export const firstRefreshToken = (sessionId: string): RefreshToken => tokenOf(sessionId, randomBytes(SECRET_BYTES))

/** The session that a token claims to be of; null for what is no token. */
export function sessionIdOf(text: string): string | null {
  const bytes = parseOpaqueToken(text)
  return bytes && Buffer.from(bytes.subarray(0, SESSION_ID_BYTES)).toString('hex')
}

export function successorOf(text: string, secret: Uint8Array): RefreshToken {
  return tokenOf(sessionIdOf(text)!, createHmac('sha256', secret).update(text).digest().subarray(0, SECRET_BYTES))
}
