import { RichText } from '@atproto/api'
import { describe, expect, test } from 'bun:test'
import { checkPostText, partsOf } from './rich-text.ts'

const read = (text: string) =>
  partsOf(text).map(({ byteStart, byteEnd, feature }) => [
    Buffer.from(text).subarray(byteStart, byteEnd).toString(),
    Object.values(feature)[1],
  ])

describe('finds what the common library finds', () => {
  test.each([
    'hello @alice.test',
    '@alice.example.com: see https://example.com/a?b=c#d, and #café!',
    'ééé 👨‍👩‍👧 @alice.test (https://example.com/x) #ok.',
    'a link (https://example.com/Foo_(bar)) in brackets',
    '#1 #1a #️⃣ # ##  #tag-with-dashes #日本語 ＃wide',
    'mail me@example.com, and https://example.com/@alice.test',
    '@alice.test.',
    'no parts',
    '',
  ])('%s', (text) => {
    const rich = new RichText({ text })
    rich.detectFacetsWithoutResolution()
    const theirs = (rich.facets ?? []).filter(({ features: [feature] }) => {
      // It also links addresses without a scheme, which need a list of all top-level domains.
      const { uri } = feature as { uri?: string }
      return uri === undefined || text.includes(uri)
    })
    expect(
      partsOf(text)
        .map(({ byteStart, byteEnd }) => [byteStart, byteEnd])
        .sort(),
    ).toEqual(theirs.map(({ index: { byteStart, byteEnd } }) => [byteStart, byteEnd]).sort())
  })
})

test('a facet counts in bytes of UTF-8', () => {
  expect(read('é @alice.test #ä')).toEqual([
    ['@alice.test', 'alice.test'],
    ['#ä', 'ä'],
  ])
})

test('a post has 300 characters at most, however many bytes each takes', () => {
  const family = '👨‍👩‍👧‍👦'
  expect(() => checkPostText('é'.repeat(300))).not.toThrow()
  expect(() => checkPostText('é'.repeat(301))).toThrow('301 characters')
  expect(() => checkPostText(family.repeat(120))).not.toThrow()
  expect(() => checkPostText(family.repeat(121))).toThrow('3000 bytes')
  expect(() => checkPostText('\ud800')).toThrow('Unicode')
})
