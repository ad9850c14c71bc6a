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

/** Keys by their bytes: every server of a world opens the same ones. */
const opened = new Map<string, real.KeyObject>()
const MAX_OPENED = 1000

function openedOnce(given: { key: unknown }, open: () => real.KeyObject): real.KeyObject {
  const { key } = given
  const name = Buffer.isBuffer(key) ? key.toString('latin1') : null
  const known = name === null ? undefined : opened.get(name)
  if (known !== undefined) return known
  const made = open()
  if (opened.size >= MAX_OPENED) opened.clear()
  if (name !== null) opened.set(name, made)
  return made
}

export const createPrivateKey = (given: real.JsonWebKeyInput): real.KeyObject =>
  openedOnce(given, () => real.createPrivateKey(given))
export const createPublicKey = (given: real.JsonWebKeyInput): real.KeyObject =>
  openedOnce(given, () => real.createPublicKey(given))

/** The order of the curve P-256. */
const ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n
const WORD_BYTES = 32

const numberOf = (bytes: Uint8Array): bigint => BigInt(`0x${Buffer.from(bytes).toString('hex')}`)
const bytesOf = (number: bigint): Buffer => Buffer.from(number.toString(16).padStart(2 * WORD_BYTES, '0'), 'hex')

/** The number that every signature is made with. Whoever sees two learns the keys, which are nobody's here. */
const ONCE = numberOf(real.createHash('sha256').update('once').digest())
const INVERSE = inverse(ONCE)
const R = rOf(ONCE)

function rOf(once: bigint): bigint {
  const curve = real.createECDH('prime256v1')
  curve.setPrivateKey(bytesOf(once))
  return numberOf(curve.getPublicKey().subarray(1, 1 + WORD_BYTES)) % ORDER
}

const scalars = new WeakMap<real.KeyObject, bigint | null>()

/** The scalar of a key of P-256; null for another key. */
function scalarOf(key: real.KeyObject): bigint | null {
  let known = scalars.get(key)
  if (known === undefined) {
    const { d, crv } = key.export({ format: 'jwk' })
    scalars.set(key, (known = crv === 'P-256' ? numberOf(Buffer.from(d!, 'base64url')) : null))
  }
  return known
}

/** Public keys by their names. */
const names = new WeakMap<real.KeyObject, string>()

function nameOf(key: real.KeyObject): string {
  const known = names.get(key)
  if (known !== undefined) return known
  const { crv, x, y } = (key.type === 'private' ? real.createPublicKey(key as never) : key).export({ format: 'jwk' })
  const name = `${crv} ${x} ${y}`
  names.set(key, name)
  return name
}

/** Signatures that verify, by key and digest: one that was made here, or has verified before, does so again. */
const verified = new Map<string, Buffer>()
const MAX_VERIFIED = 1000

function noteVerified(name: string, signature: Uint8Array): void {
  if (verified.size >= MAX_VERIFIED) verified.clear()
  verified.set(name, Buffer.from(signature))
}

export function verify(
  algorithm: string,
  message: Uint8Array,
  options: real.VerifyKeyObjectInput,
  signature: Uint8Array,
): boolean {
  const name = `${nameOf(options.key)} ${Bun.SHA256.hash(message, 'base64')}`
  if (verified.get(name)?.equals(signature)) return true
  if (!real.verify(algorithm, message, options, signature)) return false
  noteVerified(name, signature)
  return true
}

/** A signature of P-256 that is the same whenever it is made of the same. */
export function sign(algorithm: string, message: Uint8Array, options: real.SignKeyObjectInput): Uint8Array {
  const scalar = scalarOf(options.key)
  if (scalar === null) return real.sign(algorithm, message, options)
  const digest = Buffer.from(Bun.SHA256.hash(message, 'hex'), 'hex')
  const s = (INVERSE * (numberOf(digest) + R * scalar)) % ORDER
  // Of the two that verify, the network takes the lower one.
  const signature = new Uint8Array(Buffer.concat([bytesOf(R), bytesOf(s > ORDER / 2n ? ORDER - s : s)]))
  noteVerified(`${nameOf(options.key)} ${digest.toString('base64')}`, signature)
  return signature
}

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
