/** Base64url (RFC 4648, 5) without padding, in canonical form only: nothing that is signed or stored has two spellings. */

export const base64url = (bytes: Uint8Array): string => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64url')

/** Returns the bytes; null for any other text, including padded text and text with stray trailing bits, which many decoders accept. */
export function parseBase64url(text: string): Uint8Array | null {
  const bytes = Buffer.from(text, 'base64url')
  return bytes.toString('base64url') === text ? bytes : null
}
