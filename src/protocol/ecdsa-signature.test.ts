import { generateKeyPairSync, randomBytes, sign, verify } from 'node:crypto'
import { expect, test } from 'bun:test'
import { unwrapSignature } from './ecdsa-signature.ts'

const curves = [
  [1, 'P-256'],
  [2, 'P-384'],
  [3, 'P-521'],
] as const

test.each(curves)(
  'signatures of the curve %d (%s) keep their numbers, however short those are',
  (curve, namedCurve) => {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve })
    for (let i = 0; i < 300; i++) {
      const text = randomBytes(8)
      const raw = unwrapSignature(sign('sha256', text, privateKey), curve)
      expect(verify('sha256', text, { key: publicKey, dsaEncoding: 'ieee-p1363' }, raw)).toBe(true)
    }
  },
)

const bytes = (hex: string) => Uint8Array.from(Buffer.from(hex.replaceAll(' ', ''), 'hex'))

test('small numbers are filled up with zeros', () => {
  const raw = unwrapSignature(bytes('30 07 02 01 05 02 02 00 80'), 1)
  expect(Buffer.from(raw).toString('hex')).toBe('05'.padStart(64, '0') + '80'.padStart(64, '0'))
})

test.each([
  ['nothing', ''],
  ['a set', '31 06 02 01 05 02 01 06'],
  ['one number', '30 03 02 01 05'],
  ['three numbers', '30 09 02 01 05 02 01 06 02 01 07'],
  ['bytes that follow', '30 06 02 01 05 02 01 06 00'],
  ['a number that ends early', '30 06 02 01 05 02 02 06'],
  ['a sequence that ends early', '30 07 02 01 05 02 01 06'],
  ['a negative number', '30 06 02 01 85 02 01 06'],
  ['no number', '30 05 02 00 02 01 06'],
  ['a zero too many', '30 07 02 02 00 05 02 01 06'],
  ['a text', '30 06 04 01 05 02 01 06'],
  ['a length in two bytes that fits in one', '30 81 06 02 01 05 02 01 06'],
  ['a length without end', '30 80 02 01 05 02 01 06 00 00'],
  ['a length in four bytes', '30 84 00 00 00 06 02 01 05 02 01 06'],
])('%s is no signature', (_, hex) => {
  expect(() => unwrapSignature(bytes(hex), 1)).toThrow(RangeError)
})

test('a number that is too long for the curve, and a curve that nobody knows, are refused', () => {
  const long = `30 26 02 21 01 ${'ff'.repeat(32)} 02 01 06`
  expect(() => unwrapSignature(bytes(long), 1)).toThrow('malformed')
  expect(unwrapSignature(bytes(long), 2)).toHaveLength(96)
  expect(() => unwrapSignature(bytes('30 06 02 01 05 02 01 06'), 9)).toThrow('unknown curve')
})
