/** Stands in for `node:crypto`: the same, with what is random drawn from the seed. */
import * as real from 'node:crypto'
import { randomInto, uuid } from './seams.ts'

export * from 'node:crypto'

export const randomBytes = (count: number): Buffer => randomInto(Buffer.alloc(count))
export const randomUUID = uuid
export const randomFillSync = randomInto

/** The runtime's own generator cannot be seeded, so the pair is made of a scalar that can. */
export function generateKeyPairSync(
  type: 'ec',
  options: { namedCurve: string },
): {
  publicKey: real.KeyObject
  privateKey: real.KeyObject
} {
  if (type !== 'ec') throw new Error('the simulator makes pairs of elliptic curves alone')
  const curve = real.createECDH(options.namedCurve === 'P-256' ? 'prime256v1' : options.namedCurve)
  curve.setPrivateKey(randomBytes(32))
  const point = curve.getPublicKey()
  const jwk = {
    kty: 'EC',
    crv: 'P-256',
    x: point.subarray(1, 33).toString('base64url'),
    y: point.subarray(33).toString('base64url'),
  }
  return {
    publicKey: real.createPublicKey({ key: jwk, format: 'jwk' }),
    privateKey: real.createPrivateKey({
      key: { ...jwk, d: curve.getPrivateKey().toString('base64url') },
      format: 'jwk',
    }),
  }
}

/** The order of the curve P-256. */
const ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n
const WORD_BYTES = 32

interface Parts {
  d?: string
  crv?: string
}

const parts = new WeakMap<real.KeyObject, Parts>()

function partsOf(key: real.KeyObject): Parts {
  let known = parts.get(key)
  if (known === undefined) parts.set(key, (known = key.export({ format: 'jwk' })))
  return known
}

/** A signature of P-256 that is the same whenever it is made of the same. */
export function sign(algorithm: string, message: Uint8Array, options: real.SignKeyObjectInput): Uint8Array {
  const { d, crv } = partsOf(options.key)
  if (crv !== 'P-256') return real.sign(algorithm, message, options)
  const digest = real.createHash('sha256').update(message).digest()
  const key = Buffer.from(d!, 'base64url')
  const once = (numberOf(real.createHash('sha512').update(key).update(digest).digest()) % (ORDER - 1n)) + 1n
  const curve = real.createECDH('prime256v1')
  curve.setPrivateKey(bytesOf(once))
  const r = numberOf(curve.getPublicKey().subarray(1, 1 + WORD_BYTES)) % ORDER
  const s = (inverse(once) * (numberOf(digest) + r * numberOf(key))) % ORDER
  // Of the two that verify, the network takes the lower one.
  return new Uint8Array(Buffer.concat([bytesOf(r), bytesOf(s > ORDER / 2n ? ORDER - s : s)]))
}

const numberOf = (bytes: Uint8Array): bigint => BigInt(`0x${Buffer.from(bytes).toString('hex')}`)
const bytesOf = (number: bigint): Buffer => Buffer.from(number.toString(16).padStart(2 * WORD_BYTES, '0'), 'hex')

/** Modulo the order of the curve. */
function inverse(number: bigint): bigint {
  let [before, after] = [ORDER, number]
  let [one, other] = [0n, 1n]
  while (after > 0n) {
    const times = before / after
    ;[before, after] = [after, before % after]
    ;[one, other] = [other, one - times * other]
  }
  return ((one % ORDER) + ORDER) % ORDER
}
