import { expect, test } from 'bun:test'
import { shortCode } from './short-code.ts'

test('bytes that would favour some characters are thrown away', () => {
  const bytes = [255, 252, 0, 35, 36, 251, 7]
  let at = 0
  const next = (count: number) => Uint8Array.from({ length: count }, () => bytes[at++ % bytes.length]!)
  expect(shortCode(5, next)).toBe('A9A9H')
})
