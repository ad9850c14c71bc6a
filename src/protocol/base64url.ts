/** Base64url (RFC 4648, 5) without padding, in its one canonical spelling: nothing that is signed or stored has two. */

export const base64url = (bytes: Uint8Array): string => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64url')

/** The bytes; null for any other text, also for one that decoders commonly accept: padded, or with stray bits at its end. */
export function parseBase64url(text: string): Uint8Array | null {
  const bytes = Buffer.from(text, 'base64url')
  return bytes.toString('base64url') === text ? bytes : null
}
