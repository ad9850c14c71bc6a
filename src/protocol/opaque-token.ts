/**
 * Opaque tokens: 32 random bytes, written as 43 characters of base64url and stored as the SHA-256 of the bytes. A token
 * in any other spelling is an unknown token.
 */
import { createHash } from 'node:crypto'
import { base64url, parseBase64url } from './base64url.ts'

export const OPAQUE_TOKEN_BYTES = 32

export const formatOpaqueToken = (bytes: Uint8Array): string => base64url(bytes)

/** Returns the token's bytes; null unless the text is canonical. */
export function parseOpaqueToken(text: string): Uint8Array | null {
  const bytes = parseBase64url(text)
  return bytes?.byteLength === OPAQUE_TOKEN_BYTES ? bytes : null
}

/** The stored form of a token, SHA-256 in lower-case hex; null if the text is not a token. */
export function opaqueTokenHash(text: string): string | null {
  const bytes = parseOpaqueToken(text)
  return bytes && createHash('sha256').update(bytes).digest('hex')
}
