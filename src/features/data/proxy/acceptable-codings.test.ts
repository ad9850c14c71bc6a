import { expect, test } from 'bun:test'
import { acceptableCodings } from './acceptable-codings.ts'

test.each([
  [null, 'identity'],
  ['', 'identity'],
  ['gzip, deflate, br, zstd', 'gzip;q=1, deflate;q=1, br;q=1, zstd;q=1'],
  ['GZIP;q=0.5 , br ; q=1.0', 'gzip;q=0.5, br;q=1'],
  ['invalid', 'identity'],
  ['invalid, gzip;q=0', 'identity'],
  ['*', 'identity'],
  ['gzip, *;q=0', 'gzip;q=1, identity;q=0'],
  ['gzip, identity;q=0', 'gzip;q=1, identity;q=0'],
  ['identity;q=0.1, *;q=0', 'identity'],
])('%p asks for %s', (header, asked) => {
  expect(acceptableCodings(header)).toBe(asked)
})

test.each(['invalid, *;q=0', 'identity;q=0', '*;q=0', 'invalid, identity;q=0'])('%p cannot be met', (header) => {
  expect(() => acceptableCodings(header)).toThrow('this service does not support any of the requested encodings')
})

test.each([
  [';q=1', ';q=1'],
  ['gzip;q=2', 'gzip;q=2'],
  ['gzip;q=-1', 'gzip;q=-1'],
  ['gzip;level=9', 'gzip;level=9'],
  ['br,,gzip', ''],
  ['gzip;q=1;q=1', 'gzip;q=1;q=1'],
])('%p is malformed', (header, part) => {
  expect(() => acceptableCodings(header)).toThrow(`Invalid accept-encoding: "${part}"`)
})
