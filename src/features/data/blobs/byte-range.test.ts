import { expect, test } from 'bun:test'
import { byteRangeOf } from './byte-range.ts'

const range = (value: string, size = 100, more: Record<string, string> = {}) =>
  byteRangeOf(new Headers({ range: value, ...more }), { size, etag: '"x"' })

test.each([
  ['bytes=0-9', { first: 0, last: 9 }],
  ['bytes=90-', { first: 90, last: 99 }],
  ['bytes=90-1000', { first: 90, last: 99 }],
  ['bytes=-10', { first: 90, last: 99 }],
  ['bytes=-1000', { first: 0, last: 99 }],
  ['bytes=100-', 'unsatisfiable' as const],
  ['bytes=-0', 'unsatisfiable' as const],
  ['bytes=9-0', null],
  ['bytes=-', null],
  ['bytes=0-1,3-4', null],
  ['lines=0-9', null],
])('%s', (value, expected) => {
  expect(range(value)).toEqual(expected)
})

test('nothing has no first byte', () => expect(range('bytes=0-', 0)).toBe('unsatisfiable'))

test('a range of something else gets the whole', () => {
  expect(range('bytes=0-9', 100, { 'if-range': '"x"' })).toEqual({ first: 0, last: 9 })
  expect(range('bytes=0-9', 100, { 'if-range': '"y"' })).toBeNull()
})
