/** Stands in for `node:crypto`: the same, with what is random drawn from the seed. */
import { p256 } from '@noble/curves/nist.js'
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

/** A signature of P-256 that is the same whenever it is made of the same. */
export function sign(algorithm: string, message: Uint8Array, options: real.SignKeyObjectInput): Uint8Array {
  const { d, crv } = options.key.export({ format: 'jwk' })
  if (crv !== 'P-256') return real.sign(algorithm, message, options)
  const digest = new Uint8Array(real.createHash('sha256').update(message).digest())
  return p256.sign(digest, new Uint8Array(Buffer.from(d!, 'base64url'))).toCompactRawBytes()
}
