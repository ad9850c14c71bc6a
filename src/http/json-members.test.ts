import { expect, test } from 'bun:test'
import { hasDoubledMember } from './json-members.ts'

const isDoubled = (text: string) => hasDoubledMember(text, JSON.parse(text))

test.each([
  '{"a":1,"a":1}',
  '{"a":1,"\\u0061":2}',
  '{"a":{"b":1,"b":2}}',
  '{"a":[{"b":1,"b":2}]}',
  '[{"":0,"":0}]',
  '{"__proto__":1,"__proto__":2}',
  '{"1":1,"1":2}',
])('%s has a member twice', (text) => {
  expect(isDoubled(text)).toBe(true)
})

test.each([
  '{}',
  '[]',
  '"a:b"',
  '{"a":1,"b":{"a":2}}',
  '{"a:":"::","b\\"":"\\\\"}',
  '{"__proto__":{"a":1},"constructor":2}',
  ' { "a" : [ 1 , { "a" : null } ] } ',
])('%s has none', (text) => {
  expect(isDoubled(text)).toBe(false)
})
