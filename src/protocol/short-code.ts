/** Codes that people read and type. */

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789'
/**
 * The largest multiple of the alphabet's size that fits in a byte. Larger bytes would favour the first letters and are
 * discarded.
 */
const FAIR_BYTES = 256 - (256 % ALPHABET.length)

/** Returns `length` uniformly distributed characters of `A-Z0-9`. Calls `randomBytes` until there are enough. */
export function shortCode(length: number, randomBytes: (count: number) => Uint8Array): string {
  let code = ''
  while (code.length < length) {
    for (const byte of randomBytes(length))
      if (byte < FAIR_BYTES && code.length < length) code += ALPHABET[byte % ALPHABET.length]
  }
  return code
}

/** The largest multiple of 100 that fits in a byte. */
const FAIR_HUNDREDS = 200

/** Returns two uniformly distributed digits. Calls `randomBytes` until there is a fair byte. */
export function twoDigits(randomBytes: (count: number) => Uint8Array): string {
  for (;;) {
    const fair = randomBytes(8).find((byte) => byte < FAIR_HUNDREDS)
    if (fair !== undefined) return String(fair % 100).padStart(2, '0')
  }
}
