/**
 * Opaque tokens: 32 random bytes, written as 43 characters of base64url and stored as the SHA-256 of the bytes. A
 * token in any other spelling is an unknown token.
 */
import { createHash } from 'node:crypto'

export const OPAQUE_TOKEN_BYTES = 32

export const formatOpaqueToken = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64url')

/** The token's bytes; null unless it is spelled in the one canonical way. */
export function parseOpaqueToken(text: string): Uint8Array | null {
  const bytes = Buffer.from(text, 'base64url')
  return bytes.byteLength === OPAQUE_TOKEN_BYTES && bytes.toString('base64url') === text ? bytes : null
}

/** What is stored of a token: lower-case hex. Null for what is none. */
export function opaqueTokenHash(text: string): string | null {
  const bytes = parseOpaqueToken(text)
  return bytes && createHash('sha256').update(bytes).digest('hex')
}
