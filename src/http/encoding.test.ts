import { expect, test } from 'bun:test'
import { chosenCoding, matches, weakEtag } from './encoding.ts'

test.each([
  [null, null],
  ['', null],
  ['identity', null],
  ['gzip', 'gzip'],
  ['gzip, br', 'br'],
  ['gzip;q=0.8, br;q=0.1', 'gzip'],
  ['*', 'br'],
  ['*;q=0', null],
  ['br;q=0, *;q=0.5', 'gzip'],
  ['identity, gzip;q=0.5', null],
  ['compress', null],
  ['gzip;q=nonsense', null],
])('Accept-Encoding %p chooses %p', (header, coding) => {
  expect(chosenCoding(header)).toBe(coding)
})

test('validators compare weakly', () => {
  const etag = weakEtag('{"a":1}')
  expect(matches(etag, etag)).toBe(true)
  expect(matches(`"other", ${etag.replace('W/', '')}`, etag)).toBe(true)
  expect(matches('*', etag)).toBe(true)
  expect(matches('"other"', etag)).toBe(false)
  expect(matches(null, etag)).toBe(false)
})
