import { expect, test } from 'bun:test'
import { k256InScript, signingKey, type Curve } from '../../protocol/keys.ts'
import { loadNativeK256, newSigningSecret, openSigningKey } from './signing-keys.ts'

const withBuild = ['linux-x64', 'darwin-arm64', 'win32-x64'].includes(`${process.platform}-${process.arch}`)
const message = new TextEncoder().encode('message')

test.each(['p256', 'k256'] as Curve[])('new %s secrets make keys that sign', (curve) => {
  const [one, other] = [openSigningKey(curve, newSigningSecret(curve)), openSigningKey(curve, newSigningSecret(curve))]
  expect(one.publicKey).toMatchObject({ curve })
  expect(one.publicKey.verify(message, one.sign(message))).toBe(true)
  expect(one.publicKey.verify(message, other.sign(message))).toBe(false)
})

test.if(withBuild)('the native library and the script make the same points and the same signatures', () => {
  const native = loadNativeK256()!
  for (let i = 0; i < 50; i++) {
    const secret = newSigningSecret('k256')
    const digest = crypto.getRandomValues(new Uint8Array(32))
    expect(Buffer.from(native.pointOf(secret)).toString('hex')).toBe(
      Buffer.from(k256InScript.pointOf(secret)).toString('hex'),
    )
    expect(Buffer.from(native.sign(digest, secret)).toString('hex')).toBe(
      Buffer.from(k256InScript.sign(digest, secret)).toString('hex'),
    )
  }
  const secret = newSigningSecret('k256')
  const [one, other] = [signingKey('k256', secret, native), signingKey('k256', secret)]
  expect(other.publicKey.verify(message, one.sign(message))).toBe(true)
})

const order = Buffer.from('fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141', 'hex')
const asNumber = (bytes: Uint8Array) => BigInt(`0x${Buffer.from(bytes).toString('hex')}`)
const asBytes = (number: bigint) => Buffer.from(number.toString(16).padStart(64, '0'), 'hex')

test.if(withBuild)('the native library and the script accept the same signatures', () => {
  const native = loadNativeK256()!
  const n = asNumber(order)
  for (let i = 0; i < 20; i++) {
    const secret = newSigningSecret('k256')
    const digest = crypto.getRandomValues(new Uint8Array(32))
    const [point, signature] = [native.pointOf(secret), native.sign(digest, secret)]
    const [r, s] = [asNumber(signature.subarray(0, 32)), asNumber(signature.subarray(32))]
    const verdicts = (given: bigint[], over = digest) => {
      const bytes = Buffer.concat(given.map(asBytes))
      return [false, true].map((allowHighS) => {
        const [one, other] = [native, k256InScript].map((k256) => k256.verify(over, bytes, point, allowHighS))
        expect(one).toBe(other!)
        return one
      })
    }
    expect(verdicts([r, s])).toEqual([true, true])
    expect(verdicts([r, n - s])).toEqual([false, true])
    expect(verdicts([r, s], crypto.getRandomValues(new Uint8Array(32)))).toEqual([false, false])
    for (const [badR, badS] of [
      [s, r],
      [n - r, s],
      [0n, s],
      [r, 0n],
      [n, s],
      [r, n],
      [r, n + 1n],
      [2n ** 256n - 1n, s],
      [r, s + 1n],
      [0n, 0n],
    ] as const)
      expect(verdicts([badR, badS])).toEqual([false, false])
    expect(signature).toEqual(native.sign(digest, secret))
  }
})

test('secrets outside the group are refused', () => {
  for (const bad of [
    new Uint8Array(32),
    new Uint8Array(32).fill(255),
    order,
    new Uint8Array(31).fill(1),
    new Uint8Array(33).fill(1),
  ]) {
    expect(() => openSigningKey('k256', bad)).toThrow()
  }
})
