import { expect, spyOn, test } from 'bun:test'
import { mutated } from '../../tests/support/mutations.ts'
import { Random } from '../../tests/support/random.ts'
import { isSpaceRecord, spaceAuthority } from '../../tests/support/space-oracle.ts'
import { parseAtUri, type Did, type Nsid, type RecordKey } from './identifiers.ts'
import {
  hasAddressInSpace,
  isSpaceAddress,
  parseSpaceRecordUri,
  parseSpaceUri,
  spaceRecordUri,
  spaceUri,
} from './space-address.ts'

const authority = 'did:plc:aaaaaaaaaaaaaaaaaaaaaaaa' as Did
const author = 'did:web:bob.example.com' as Did
const space = spaceUri(authority, 'com.example.forum' as Nsid, 'self' as RecordKey)
const record = spaceRecordUri(space, author, 'com.example.thread/3jzfcijpj2z2a')

test('a space and a record in it have addresses of their own, which are no URIs of public data', () => {
  const parsed = { uri: space, authority, type: 'com.example.forum', skey: 'self' }
  expect<unknown>(parseSpaceUri(space)).toEqual(parsed)
  expect<unknown>(parseSpaceRecordUri(record)).toEqual({
    space: parsed,
    author,
    collection: 'com.example.thread',
    rkey: '3jzfcijpj2z2a',
  })
  expect([parseSpaceUri(record), parseSpaceRecordUri(space)]).toEqual([null, null])
  for (const uri of [space, record]) expect([uri, isSpaceAddress(uri), parseAtUri(uri)]).toEqual([uri, true, null])
})

test('an address has one spelling, and nothing may be missing or follow', () => {
  const not = [
    '',
    'at://',
    `at://${authority}/space`,
    `at://${authority}/space/com.example.forum`,
    'at://alice.test/space/com.example.forum/self',
    `at://${authority}/space/forum/self`,
    `at://${authority}/Space/com.example.forum/self`,
    `at://${authority}/space/com.example.forum/.`,
    `at://${authority}/space/com.example.forum/..`,
    `at://${authority}/space/com.example.forum/`,
    `${space}/`,
    `${space}?x=1`,
    `${space}#x`,
    `${space}\n`,
    ` ${space}`,
    `${space}/${author}`,
    `${space}/${author}/com.example.thread`,
    `${space}/bob.example.com/com.example.thread/3jzfcijpj2z2a`,
    `${space}/${author}/com.example.thread/..`,
    `${record}/`,
    `${record}/more`,
    `${space}${'x'.repeat(509)}`,
    `${space}${'x'.repeat(1_000_000)}`,
    '/'.repeat(1_000_000),
    space.replace('at:', 'ats:'),
    space.replace('at:', 'AT:'),
  ]
  for (const uri of not) expect([uri.slice(0, 200), isSpaceAddress(uri)]).toEqual([uri.slice(0, 200), false])
  const longest = `${space}${'x'.repeat(508)}`
  expect(parseSpaceUri(longest)?.skey).toHaveLength(512)
})

test('a second reader accepts and refuses the same of 10,000 changed addresses', () => {
  const random = new Random(1601)
  let accepted = 0
  for (let i = 0; i < 10_000; i++) {
    let text: string = random.of([space, record])
    for (let changes = random.below(2); changes >= 0; changes--) text = mutated(text, random, 'aZ09.-_~:/%?# @\n\\é')
    expect([text, parseSpaceUri(text)?.authority ?? null]).toEqual([text, spaceAuthority(text)])
    expect([text, parseSpaceRecordUri(text) !== null]).toEqual([text, isSpaceRecord(text)])
    if (isSpaceAddress(text)) accepted++
  }
  expect(accepted).toBeGreaterThan(1000)
})

const escaped = (text: string) =>
  [...text].map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`).join('')

test.each([
  [space, true],
  [record, true],
  ['ATS://x/Space', true],
  ['at:///space?x', true],
  [' \\n\\u00a0\u3000at:\\/\\/x\\u002fspace#', true],
  [escaped(space), true],
  [`a \\"${space}\\"`, true],
  [`${escaped('"')}${space}`, true],
  [`\\\\ ${space}`, false],
  [`x${space}`, false],
  ['at://x/y/space', false],
  ['at://x/spaces', false],
  ['at://x\\"/space', false],
  ['at:/\\x/space', false],
  ['\\u00zz', false],
  ['\\', false],
])('a JSON text with the string %s names a space: %p', (text, isNamed) => {
  expect(hasAddressInSpace(`{"a":"${text}"}`)).toBe(isNamed)
  expect(hasAddressInSpace(`{"\\n":["${text}",1],"${text}":0}`)).toBe(isNamed)
})

test('the runtime is not asked for each escape of a JSON text', () => {
  const asked = spyOn(Number, 'parseInt')
  const isNamed = hasAddressInSpace(`["${escaped(' '.repeat(1000))}at://x/space"]`)
  const calls = asked.mock.calls.length
  asked.mockRestore()
  expect([isNamed, calls]).toEqual([true, 0])
})
