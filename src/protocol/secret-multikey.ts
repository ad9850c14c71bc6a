/**
 * A secret key as text: the multicodec of its curve and its scalar, in base58. Other programs for atproto identities
 * read and write this form.
 *
 * Source: the multicodec table, `p256-priv` and `secp256k1-priv`.
 */
import { base58btc } from 'multiformats/bases/base58'
import { signingKey, type Curve, type SigningKey } from './keys.ts'

/** The varints of the multicodecs, in hex. */
const secretCodecs: Record<Curve, string> = { p256: '8626', k256: '8126' }
const curveByCodec = new Map(Object.entries(secretCodecs).map(([curve, codec]) => [codec, curve as Curve]))
const SCALAR_BYTES = 32
/** More characters than a key in base58 has. Decoding takes quadratic time. */
const MAX_CHARS = 128

/** `secret` is the scalar, big-endian. */
export const formatSecretMultikey = (curve: Curve, secret: Uint8Array): string =>
  base58btc.encode(Buffer.concat([Buffer.from(secretCodecs[curve], 'hex'), secret]))

/** Returns null if the text is not a secret key of either curve. */
export function parseSecretMultikey(text: string): SigningKey | null {
  if (text.length > MAX_CHARS) return null
  try {
    const bytes = base58btc.decode(text as `z${string}`)
    const curve = curveByCodec.get(bytes.subarray(0, 2).toHex())
    if (curve === undefined || bytes.length !== SCALAR_BYTES + 2) return null
    return signingKey(curve, bytes.subarray(2))
  } catch {
    return null // the libraries throw for other characters, and for scalars outside the group
  }
}
