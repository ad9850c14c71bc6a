import { expect, test } from 'bun:test'
import { recordUriOf } from './record-links.ts'

test('a link of the app names its record', () => {
  const did = 'did:plc:abc'
  for (const [link, uri] of [
    ['https://bsky.app/profile/alice.test/post/3k2', 'at://alice.test/app.bsky.feed.post/3k2'],
    [`https://bsky.app/profile/${did}/post/3k2?ref=x#y`, `at://${did}/app.bsky.feed.post/3k2`],
    ['https://bsky.app/profile/alice.test/post/3k2/liked-by', 'at://alice.test/app.bsky.feed.post/3k2'],
    ['https://bsky.app/profile/alice.test/feed/cats', 'at://alice.test/app.bsky.feed.generator/cats'],
    ['https://bsky.app/profile/alice.test/lists/3k2', 'at://alice.test/app.bsky.graph.list/3k2'],
    ['https://bsky.app/starter-pack/alice.test/3k2', 'at://alice.test/app.bsky.graph.starterpack/3k2'],
  ] as const)
    expect(recordUriOf(link)).toBe(uri)
})

test('any other text stays as it is', () => {
  for (const text of [
    'at://alice.test/app.bsky.feed.post/3k2',
    'https://bsky.app/profile/alice.test',
    'https://bsky.app/profile/alice.test/constructor/3k2',
    'https://bsky.example/profile/alice.test/post/3k2',
    'bafkreib',
    '',
  ])
    expect(recordUriOf(text)).toBe(text)
})
