import { expect, test } from 'bun:test'
import { chosenCoding, knownTag, weakEtag } from './encoding.ts'

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
  expect(knownTag(etag, etag)).toBe(etag)
  expect(knownTag(`"other", ${etag.replace('W/', '')}`, etag)).toBe(etag.replace('W/', ''))
  expect(knownTag('*', etag)).toBe(etag)
  expect(knownTag('"other"', etag)).toBeNull()
  expect(knownTag(null, etag)).toBeNull()
  expect(knownTag('"other-gzip", "content-br"', '"content"')).toBe('"content-br"')
  expect(knownTag('W/"content-gzip"', '"content"')).toBe('W/"content-gzip"')
  expect(knownTag('"content-zip"', '"content"')).toBeNull()
})
