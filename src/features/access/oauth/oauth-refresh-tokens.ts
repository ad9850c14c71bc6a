/**
 * Refresh tokens. The first half is the id of the session, so that even a token that was exchanged long ago identifies
 * its session. The second half is random in the first token, and an HMAC of the previous token in all others. A client
 * that lost a response or sent several requests at once therefore gets the same successor, although only hashes are
 * stored.
 */
import { createHmac, randomBytes } from 'node:crypto'
import { perContext } from '../../../platform/context.ts'
import { serverSecret } from '../../../platform/secrets/vault.ts'
import {
  formatOpaqueToken,
  OPAQUE_TOKEN_BYTES,
  opaqueTokenHash,
  parseOpaqueToken,
} from '../../../protocol/opaque-token.ts'

/** The spelling of the reference implementation: the same number of bytes, in hexadecimal. */
const formerSpelling = /^ref-([\da-f]{64})$/

/**
 * Returns a refresh token in the spelling of this server. When an account has moved here from the reference
 * implementation, its apps send the tokens that they got there, until they exchange them.
 */
export function inOwnSpelling(text: string): string {
  const hex = formerSpelling.exec(text)?.[1]
  return hex === undefined ? text : formatOpaqueToken(Buffer.from(hex, 'hex'))
}

export const SESSION_ID_BYTES = 16
const SECRET_BYTES = OPAQUE_TOKEN_BYTES - SESSION_ID_BYTES

export interface RefreshToken {
  /** The token as the client receives it. */
  text: string
  /** The stored form. */
  hash: string
}

/** The HMAC key of successors. Loaded once, at startup, and created at the first startup. */
export const refreshSecret = perContext(({ db, vault }) => serverSecret(db, vault, 'oauth-refresh'))

const tokenOf = (sessionId: string, secret: Uint8Array): RefreshToken => {
  const text = formatOpaqueToken(Buffer.concat([Buffer.from(sessionId, 'hex'), secret]))
  return { text, hash: opaqueTokenHash(text)! }
}

export const firstRefreshToken = (sessionId: string): RefreshToken => tokenOf(sessionId, randomBytes(SECRET_BYTES))

/** The session id in a token, which proves nothing; null if the text is not a token. */
export function sessionIdOf(text: string): string | null {
  const bytes = parseOpaqueToken(text)
  return bytes && Buffer.from(bytes.subarray(0, SESSION_ID_BYTES)).toString('hex')
}

/** The refresh token that replaces `text`, which must be a token. `secret` is `refreshSecret`. */
export function successorOf(text: string, secret: Uint8Array): RefreshToken {
  return tokenOf(sessionIdOf(text)!, createHmac('sha256', secret).update(text).digest().subarray(0, SECRET_BYTES))
}
