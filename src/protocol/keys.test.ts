import { describe, expect, test } from 'bun:test'
import { P256Keypair, Secp256k1Keypair, verifySignature } from '@atproto/crypto'
import { p256 } from '@noble/curves/nist.js'
import { secp256k1 } from '@noble/curves/secp256k1.js'
import { base58btc } from 'multiformats/bases/base58'
import didKeysK256 from '../../tests/vectors/interop/crypto/w3c_didkey_K256.json'
import didKeysP256 from '../../tests/vectors/interop/crypto/w3c_didkey_P256.json'
import signatures from '../../tests/vectors/interop/crypto/signature-fixtures.json'
import vectors from '../../tests/vectors/keys.json'
import {
  type Curve,
  formatDidKey,
  formatMultikey,
  parseBareMultibase,
  parseDidKey,
  parseMultikey,
  type PublicKey,
  publicKey,
  signingKey,
} from './keys.ts'

const message = new TextEncoder().encode('message')
const hex = (text: string) => new Uint8Array(Buffer.from(text, 'hex'))

describe('vectors', () => {
  for (const { label, curve, privateKeyHex, compressedPublicKeyHex, didKey, bareMultibase } of vectors.keys) {
    test(`the key "${label}" has its point, did:key and multibase`, () => {
      const key = signingKey(curve as Curve, hex(privateKeyHex))
      expect(Buffer.from(key.publicKey.bytes).toString('hex')).toBe(compressedPublicKeyHex)
      expect(formatDidKey(key.publicKey) as string).toBe(didKey)
      expect(formatMultikey(key.publicKey)).toBe(didKey.slice('did:key:'.length))
      for (const parsed of [parseDidKey(didKey), parseBareMultibase(curve as Curve, bareMultibase)]) {
        expect(parsed?.curve).toBe(curve as Curve)
        expect(parsed?.verify(message, key.sign(message))).toBe(true)
      }
    })
  }

  test('interop: private keys give their did:key', () => {
    for (const { privateKeyBytesHex, publicDidKey } of didKeysK256) {
      expect(formatDidKey(signingKey('k256', hex(privateKeyBytesHex)).publicKey) as string).toBe(publicDidKey)
    }
    for (const { privateKeyBytesBase58, publicDidKey } of didKeysP256) {
      expect(formatDidKey(signingKey('p256', base58btc.decode(`z${privateKeyBytesBase58}`)).publicKey) as string).toBe(
        publicDidKey,
      )
    }
  })

  for (const vector of signatures) {
    test(`interop: ${vector.comment}`, () => {
      const key = parseDidKey(vector.publicKeyDid) as PublicKey
      const bytes = Buffer.from(vector.messageBase64, 'base64')
      const signature = Buffer.from(vector.signatureBase64, 'base64')
      expect(key.verify(bytes, signature)).toBe(vector.validSignature)
      expect(key.verify(bytes, signature, { allowHighS: true })).toBe(!vector.tags.includes('der-encoded'))
      expect(parseBareMultibase(key.curve, vector.publicKeyMultibase)?.bytes).toEqual(key.bytes)
    })
  }
})

const oracle = { p256: p256.Point, k256: secp256k1.Point }

describe.each(['p256', 'k256'] as const)('%s', (curve) => {
  const key = signingKey(curve, crypto.getRandomValues(new Uint8Array(32)).fill(0, 0, 1))
  const other = signingKey(curve, new Uint8Array(32).fill(7))

  test('signs what @atproto/crypto verifies, always low-S, and verifies what it signs', async () => {
    const theirs = await (curve === 'p256' ? P256Keypair : Secp256k1Keypair).import(new Uint8Array(32).fill(9))
    for (let i = 0; i < 40; i++) {
      const bytes = crypto.getRandomValues(new Uint8Array(i))
      const signature = key.sign(bytes)
      expect(signature).toHaveLength(64)
      expect(await verifySignature(formatDidKey(key.publicKey), bytes, signature)).toBe(true)
      expect(parseDidKey(theirs.did())?.verify(bytes, await theirs.sign(bytes))).toBe(true)
    }
  })

  test('refuses another message, another key, a damaged, empty, long or zero signature', () => {
    const signature = key.sign(message)
    expect(key.publicKey.verify(message, signature)).toBe(true)
    expect(key.publicKey.verify(new Uint8Array([...message, 0]), signature)).toBe(false)
    expect(other.publicKey.verify(message, signature)).toBe(false)
    for (const at of [0, 31, 32, 63]) {
      const damaged = new Uint8Array(signature)
      damaged[at]! ^= 1
      expect(key.publicKey.verify(message, damaged, { allowHighS: true })).toBe(false)
    }
    for (const bad of [
      new Uint8Array(0),
      signature.subarray(1),
      new Uint8Array([...signature, 0]),
      new Uint8Array(64),
      new Uint8Array(64).fill(255),
    ]) {
      expect(key.publicKey.verify(message, bad)).toBe(false)
      expect(key.publicKey.verify(message, bad, { allowHighS: true })).toBe(false)
    }
  })

  test('refuses scalars outside its group', () => {
    for (const bad of [
      new Uint8Array(32),
      new Uint8Array(32).fill(255),
      new Uint8Array(31).fill(1),
      new Uint8Array(33).fill(1),
    ]) {
      expect(() => signingKey(curve, bad)).toThrow()
    }
  })

  test('takes points in both forms, and none off the curve', () => {
    const compressed = key.publicKey.bytes
    const uncompressed = oracle[curve].fromBytes(compressed).toBytes(false)
    for (const point of [compressed, uncompressed]) expect(publicKey(curve, point)?.bytes).toEqual(compressed)
    const wrongY = uncompressed.with(64, uncompressed[64]! ^ 1)
    const hybrid = uncompressed.with(0, 6 + (uncompressed[64]! & 1))
    const xBeyondField = new Uint8Array(33).fill(255).with(0, 2)
    const bad = [wrongY, hybrid, xBeyondField, new Uint8Array(33), new Uint8Array(65), new Uint8Array(0)]
    for (const point of [...bad, compressed.subarray(1), compressed.with(0, 5), new Uint8Array([0])])
      expect(publicKey(curve, point)).toBeNull()
  })
})

test('text that is no key is refused', () => {
  const good = vectors.keys[0]!.didKey
  const refused = [
    '',
    'did:key:',
    'did:key:z',
    'did:web:example.com',
    good.slice(0, -1),
    `${good}1`,
    good.replace('did:key:z', 'did:key:m'),
    `${good}0`,
    `did:key:${vectors.keys[0]!.bareMultibase}`,
    `did:key:z${'1'.repeat(100_000)}`,
    'did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK', // Ed25519
  ]
  for (const text of refused) expect(parseDidKey(text)).toBeNull()
  expect(parseMultikey(good)).toBeNull()
  expect(parseBareMultibase('p256', good)).toBeNull()
})
