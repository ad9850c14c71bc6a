/**
 * Signing keys of both atproto curves, P-256 and secp256k1 (K-256), and their text forms.
 *
 * Signatures are 64 bytes, `r` then `s`, over the SHA-256 of the message. They are always made low-S; a high-S
 * signature is refused unless the caller asks otherwise. P-256 runs in `node:crypto`, K-256 in `@noble/curves`, because
 * the runtime has no secp256k1; the library is loaded with the first such key. A caller may supply a faster
 * implementation.
 *
 * Source: atproto "Cryptography"; interop tests `crypto/`.
 */
import { createECDH, createPrivateKey, createPublicKey, ECDH, type KeyObject, sign, verify } from 'node:crypto'
import { base58btc } from 'multiformats/bases/base58'
import { BoundedCache } from '../base/bounded-cache.ts'
import { madeOnce } from '../base/made-once.ts'
import type { Did } from './identifiers.ts'

export type Curve = 'p256' | 'k256'

export interface PublicKey {
  curve: Curve
  /** The compressed point, 33 bytes. */
  bytes: Uint8Array
  verify(message: Uint8Array, signature: Uint8Array, options?: VerifyOptions): boolean
}

export interface VerifyOptions {
  allowHighS?: boolean
  /** Verifies signatures of a K-256 key. */
  k256?: K256
}

export interface SigningKey {
  publicKey: PublicKey
  /**
   * Returns a low-S signature of 64 bytes. P-256 signatures differ from call to call; K-256 signatures do not (RFC
   * 6979).
   */
  sign(message: Uint8Array): Uint8Array
}

const SIGNATURE_BYTES = 64
const HALF_BYTES = 32
const COMPRESSED_BYTES = 33

// Making keys

/** Operations of K-256 keys. */
export interface K256 {
  /** The compressed point of a scalar. Throws on a scalar that is zero or not below the order. */
  pointOf(secret: Uint8Array): Uint8Array
  /** Signs a digest of 32 bytes: low-S, 64 bytes, deterministic (RFC 6979). */
  sign(digest: Uint8Array, secret: Uint8Array): Uint8Array
  /** `signature` has 64 bytes, `point` is compressed. Returns false for numbers outside the group. */
  verify(digest: Uint8Array, signature: Uint8Array, point: Uint8Array, allowHighS: boolean): boolean
}

/** A key from its 32-byte scalar, big-endian. Throws on a scalar that is zero or not below the order. */
export function signingKey(curve: Curve, secret: Uint8Array, k256: K256 = k256InScript): SigningKey {
  return curve === 'p256' ? p256SigningKey(secret) : k256SigningKey(secret, k256)
}

/** Returns a key from its point, compressed or not; null if it is not on the curve. */
export function publicKey(curve: Curve, point: Uint8Array): PublicKey | null {
  try {
    return curve === 'p256'
      ? p256PublicKey(convertP256(point, 'compressed'))
      : k256PublicKey(secp256k1().Point.fromBytes(point).toBytes(true))
  } catch {
    return null // both throw for every invalid point
  }
}

// P-256. DER before the scalar of a PKCS #8 key without its public half, and before a compressed point in an SPKI.
const p256Pkcs8 = Buffer.from('3041020100301306072a8648ce3d020106082a8648ce3d030107042730250201010420', 'hex')
const p256Spki = Buffer.from('3039301306072a8648ce3d020106082a8648ce3d030107032200', 'hex')

function p256SigningKey(secret: Uint8Array): SigningKey {
  const key = createPrivateKey({ key: Buffer.concat([p256Pkcs8, secret]), format: 'der', type: 'pkcs8' })
  const publicKey = p256PublicKey(p256Point(secret))
  return {
    publicKey,
    sign: (message) => lowerS(sign('sha256', message, { key, dsaEncoding: 'ieee-p1363' })),
  }
}

/** Converts a point of P-256 from either form to `form`. Throws if it is not on the curve. */
export const convertP256 = (point: Uint8Array, form: 'compressed' | 'uncompressed'): Uint8Array =>
  new Uint8Array(ECDH.convertKey(point, 'prime256v1', undefined, undefined, form) as Buffer)

/** The compressed public point. */
function p256Point(secret: Uint8Array): Uint8Array {
  const pair = createECDH('prime256v1')
  pair.setPrivateKey(secret)
  return new Uint8Array(pair.getPublicKey(null, 'compressed'))
}

function p256PublicKey(bytes: Uint8Array): PublicKey {
  let key: KeyObject | null = null
  return {
    curve: 'p256',
    bytes,
    verify(message, signature, options) {
      if (signature.length !== SIGNATURE_BYTES || (isHighS(signature) && !options?.allowHighS)) return false
      key ??= createPublicKey({ key: Buffer.concat([p256Spki, bytes]), format: 'der', type: 'spki' })
      return verify('sha256', message, { key, dsaEncoding: 'ieee-p1363' }, signature)
    },
  }
}

/** The order of P-256 and its half, big-endian. */
const p256Order = Buffer.from('ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551', 'hex')
const p256HalfOrder = Buffer.from('7fffffff800000007fffffffffffffffde737d56d38bcf4279dce5617e3192a8', 'hex')

const isHighS = (signature: Uint8Array): boolean => Buffer.compare(signature.subarray(HALF_BYTES), p256HalfOrder) > 0

/** Replace a high `s` by `n - s`, in place. */
function lowerS(signature: Uint8Array): Uint8Array {
  if (!isHighS(signature)) return signature
  let borrow = 0
  for (let i = HALF_BYTES - 1; i >= 0; i--) {
    const difference = (p256Order[i] as number) - (signature[HALF_BYTES + i] as number) - borrow
    borrow = difference < 0 ? 1 : 0
    signature[HALF_BYTES + i] = difference & 0xff
  }
  return signature
}

// K-256

const secp256k1 = madeOnce(
  () => (require('@noble/curves/secp256k1.js') as typeof import('@noble/curves/secp256k1.js')).secp256k1,
)

function sha256(message: Uint8Array): Uint8Array {
  const digest = new Uint8Array(32)
  Bun.SHA256.hash(message, digest)
  return digest
}

export const k256InScript: K256 = {
  pointOf: (secret) => secp256k1().getPublicKey(secret, true),
  sign: (digest, secret) => secp256k1().sign(digest, secret, { lowS: true }).toBytes('compact'),
  verify(digest, signature, point, allowHighS) {
    try {
      return secp256k1().verify(signature, digest, point, { lowS: !allowHighS, format: 'compact' })
    } catch {
      return false // the library throws on numbers outside the group
    }
  },
}

const k256SigningKey = (secret: Uint8Array, { pointOf, sign }: K256): SigningKey => ({
  publicKey: k256PublicKey(pointOf(secret)),
  sign: (message) => sign(sha256(message), secret),
})

function k256PublicKey(bytes: Uint8Array): PublicKey {
  return {
    curve: 'k256',
    bytes,
    verify(message, signature, { allowHighS = false, k256 = k256InScript } = {}) {
      return signature.length === SIGNATURE_BYTES && k256.verify(sha256(message), signature, bytes, allowHighS)
    },
  }
}

// Text forms

/** The multicodec of a compressed point, as the two bytes of its varint. */
const multicodecs: Record<Curve, readonly [number, number]> = { p256: [0x80, 0x24], k256: [0xe7, 0x01] }
const curves = Object.keys(multicodecs) as Curve[]
const DID_KEY_PREFIX = 'did:key:'
/** More characters than any key in base58 has. Decoding takes quadratic time. */
const MAX_MULTIBASE_CHARS = 128

/** `z…`: multicodec and compressed point, as in the `Multikey` of a DID document. */
export function formatMultikey(key: PublicKey): string {
  return base58btc.encode(Buffer.concat([Buffer.from(multicodecs[key.curve]), key.bytes]))
}

export const formatDidKey = (key: PublicKey): Did => `${DID_KEY_PREFIX}${formatMultikey(key)}` as Did

/** Keys by their text. Computing a point from its `x` costs far more than a lookup. */
const knownKeys = new BoundedCache<PublicKey>(20_000)

/** Returns null if the text is not a key of either curve. */
export function parseMultikey(text: string): PublicKey | null {
  const known = knownKeys.get(text)
  if (known !== undefined) return known
  const bytes = decodeMultibase(text)
  const curve = bytes && codecOf(bytes)
  if (bytes === null || curve === null || bytes.length !== COMPRESSED_BYTES + 2) return null
  const key = publicKey(curve, bytes.subarray(2))
  if (key !== null) knownKeys.set(text, key)
  return key
}

const codecOf = (bytes: Uint8Array): Curve | null =>
  curves.find((name) => multicodecs[name].every((byte, i) => bytes[i] === byte)) ?? null

export function parseDidKey(text: string): PublicKey | null {
  return text.startsWith(DID_KEY_PREFIX) ? parseMultikey(text.slice(DID_KEY_PREFIX.length)) : null
}

/** The curve of a did:key, without computing its point. */
export function curveOf(didKey: string): Curve | null {
  const bytes = didKey.startsWith(DID_KEY_PREFIX) ? decodeMultibase(didKey.slice(DID_KEY_PREFIX.length)) : null
  return bytes && codecOf(bytes)
}

/** `z…`: the compressed point alone. */
export const formatBareMultibase = (key: PublicKey): string => base58btc.encode(key.bytes)

/** `z…`: the point alone, as in the older verification methods that name the curve in their type. */
export function parseBareMultibase(curve: Curve, text: string): PublicKey | null {
  const bytes = decodeMultibase(text)
  return bytes === null ? null : publicKey(curve, bytes)
}

function decodeMultibase(text: string): Uint8Array | null {
  if (!text.startsWith('z') || text.length > MAX_MULTIBASE_CHARS) return null
  try {
    return base58btc.decode(text)
  } catch {
    return null // a letter outside base58
  }
}
