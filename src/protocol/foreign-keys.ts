/** Public keys of other parties, in any common algorithm, and the requirements on them. */
import { createPublicKey, type KeyObject, type webcrypto } from 'node:crypto'

/** Asymmetric, so that a public key is never taken for a shared secret. */
export type ForeignAlgorithm = 'ES256' | 'ES384' | 'RS256' | 'RS384' | 'RS512' | 'EdDSA'

/** The key type that each algorithm requires, and the curve if the type allows several. */
const keyOfAlgorithm: Record<ForeignAlgorithm, { type: string; curve?: string }> = {
  ES256: { type: 'ec', curve: 'prime256v1' },
  ES384: { type: 'ec', curve: 'secp384r1' },
  RS256: { type: 'rsa' },
  RS384: { type: 'rsa' },
  RS512: { type: 'rsa' },
  EdDSA: { type: 'ed25519' },
}

/** The names of all algorithms. */
export const foreignAlgorithms = Object.keys(keyOfAlgorithm) as ForeignAlgorithm[]

/** Bits of the shortest RSA key. RFC 7518, 3.3. */
const MIN_RSA_BITS = 2048

export function fitsAlgorithm(
  { asymmetricKeyType, asymmetricKeyDetails }: KeyObject,
  algorithm: ForeignAlgorithm,
): boolean {
  const { type, curve } = keyOfAlgorithm[algorithm]
  if (asymmetricKeyType !== type || asymmetricKeyDetails?.namedCurve !== curve) return false
  return type !== 'rsa' || (asymmetricKeyDetails?.modulusLength ?? 0) >= MIN_RSA_BITS
}

/** Returns the public key of a JWK; null if it is not a key for signatures of this algorithm. RFC 7517, 4.2 to 4.4. */
export function publicKeyFor(jwk: Readonly<Record<string, unknown>>, algorithm: ForeignAlgorithm): KeyObject | null {
  const { alg, use, key_ops: operations } = jwk
  if (alg !== undefined && alg !== algorithm) return null
  if (use !== undefined && use !== 'sig') return null
  if (operations !== undefined && !(Array.isArray(operations) && operations.includes('verify'))) return null
  try {
    const key = createPublicKey({ key: jwk as webcrypto.JsonWebKey, format: 'jwk' })
    return fitsAlgorithm(key, algorithm) ? key : null
  } catch {
    return null
  }
}
