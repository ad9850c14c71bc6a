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
    expect(Buffer.from(native.pointOf(secret)).toString('hex')).toBe(Buffer.from(k256InScript.pointOf(secret)).toString('hex'))
    expect(Buffer.from(native.sign(digest, secret)).toString('hex')).toBe(Buffer.from(k256InScript.sign(digest, secret)).toString('hex'))
  }
  const secret = newSigningSecret('k256')
  const [one, other] = [signingKey('k256', secret, native), signingKey('k256', secret)]
  expect(other.publicKey.verify(message, one.sign(message))).toBe(true)
})

test('secrets outside the group are refused', () => {
  const order = Buffer.from('fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141', 'hex')
  for (const bad of [new Uint8Array(32), new Uint8Array(32).fill(255), order, new Uint8Array(31).fill(1), new Uint8Array(33).fill(1)]) {
    expect(() => openSigningKey('k256', bad)).toThrow()
  }
})
