import { expect, test } from 'bun:test'
import { withoutTrailing, withoutTrailingSlashes } from './trailing.ts'

test.each([
  ['https://example.com', 'https://example.com'],
  ['https://example.com///', 'https://example.com'],
  ['a//b/', 'a//b'],
  ['///', ''],
  ['', ''],
])('%p loses the slashes at its end', (text, expected) => {
  expect(withoutTrailingSlashes(text)).toBe(expected)
})

test('a character outside of the basic plane is one character, and half of one is another', () => {
  const isEmoji = (character: string) => character === '😀'
  expect(withoutTrailing('a😀😀', isEmoji)).toBe('a')
  expect(withoutTrailing('a😀\ude00', isEmoji)).toBe('a😀\ude00')
  expect(withoutTrailing('😀', isEmoji)).toBe('')
})

/** Counts what is asked about, which is what takes time. */
function asked(text: string): number {
  let count = 0
  withoutTrailing(text, (character) => ++count > 0 && character === '/')
  return count
}

test('each character is looked at once, and none before the first that stays', () => {
  for (const length of [1000, 64_000]) {
    expect(asked('/'.repeat(length))).toBe(length)
    expect(asked(`${'/'.repeat(length)}x`)).toBe(1)
    expect(asked(`${'/x'.repeat(length)}//`)).toBe(3)
  }
})
