/** Codes that people read out and type. */

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789'
/** The largest multiple of the alphabet's size that fits a byte: bytes from here on would favour its beginning. */
const FAIR_BYTES = 256 - (256 % ALPHABET.length)

/** `length` characters of `A-Z0-9`, each as likely as the others. `randomBytes` is drawn from until there are enough. */
export function shortCode(length: number, randomBytes: (count: number) => Uint8Array): string {
  let code = ''
  while (code.length < length) {
    for (const byte of randomBytes(length)) if (byte < FAIR_BYTES && code.length < length) code += ALPHABET[byte % ALPHABET.length]
  }
  return code
}
