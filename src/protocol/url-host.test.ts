import { expect, test } from 'bun:test'
import { hasLongHost } from './url-host.ts'

const [fits, long] = ['a'.repeat(260), 'a'.repeat(261)]

test.each([
  [`https://${fits}`, false],
  [`https://${fits}/${long}?${long}#${long}`, false],
  [`https://a.test\\${long}`, false],
  [`app.test:/${long}`, false],
  [long, false],
  ['', false],
  [`https://${long}`, true],
  [`https://${long}/x`, true],
  [`HTTP:${long}`, true],
  [`  https:\\\\/${long}`, true],
  [`ht\ntps:\t//${long}`, true],
  [`ws://a@${long}`, true],
  [`//${fits}`, false],
  [`/${long}`, false],
  [` /\t\\${long}`, true],
])('%j has a long host: %p', (text, isLong) => {
  expect(hasLongHost(text)).toBe(isLong)
})
