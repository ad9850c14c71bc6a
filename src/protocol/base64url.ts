/**
 * Base64url (RFC 4648, 5) without padding, in canonical form only: nothing that is signed or stored has two spellings.
 */
import { withoutTrailing } from '../base/trailing.ts'

export const base64url = (bytes: Uint8Array): string =>
  // The buffer behind a `Buffer` costs more to ask for than all the rest.
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
