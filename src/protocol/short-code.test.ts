import { expect, test } from 'bun:test'
import { shortCode, twoDigits } from './short-code.ts'

test('bytes that would favour some characters are thrown away', () => {
  const bytes = [255, 252, 0, 35, 36, 251, 7]
  let at = 0
  const next = (count: number) => Uint8Array.from({ length: count }, () => bytes[at++ % bytes.length]!)
  expect(shortCode(5, next)).toBe('A9A9H')
})

test('two digits are as likely as any other two', () => {
  const drawn = [Uint8Array.from([255, 200]), Uint8Array.from([231, 7, 100])]
  expect(twoDigits(() => drawn.shift()!)).toBe('07')
  expect(twoDigits(() => Uint8Array.from([199]))).toBe('99')
})
