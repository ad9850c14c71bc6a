/**
 * Base64url (RFC 4648, 5) without padding, in canonical form only, so that a signed or stored value has exactly one
 * text.
 */
import { withoutTrailing } from '../base/trailing.ts'

export const base64url = (bytes: Uint8Array): string =>
  // Reading `buffer` of a `Buffer` takes longer than encoding it, so a `Buffer` is used as it is.
  (bytes instanceof Buffer ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)).toString(
    'base64url',
  )

/** Plain base64 (RFC 4648, 4) without padding, as in the JSON of records and in hashes of passwords. */
export const unpaddedBase64 = (bytes: Uint8Array): string =>
  withoutTrailing(
    Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64'),
    (character) => character === '=',
  )

/**
 * Returns the bytes; null for any other text, including padded text and text with stray trailing bits, which many
 * decoders accept.
 */
export function parseBase64url(text: string): Uint8Array | null {
  const bytes = Buffer.from(text, 'base64url')
  return bytes.toString('base64url') === text ? bytes : null
}
