/** Links of the Bluesky app to records, as people copy them. */

const link = /^https:\/\/bsky\.app\/(?:profile\/([^/?#]+)\/(post|feed|lists)|(starter-pack)\/([^/?#]+))\/([^/?#]+)/

const collections: Readonly<Record<string, string>> = {
  post: 'app.bsky.feed.post',
  feed: 'app.bsky.feed.generator',
  lists: 'app.bsky.graph.list',
  'starter-pack': 'app.bsky.graph.starterpack',
}

/** Returns the AT URI of the record that a link shows, and any other text as it is. */
export function recordUriOf(text: string): string {
  const [, ofProfile, part, starterPack, ofPack, rkey] = link.exec(text) ?? []
  const collection = collections[part ?? starterPack ?? '']
  return collection === undefined ? text : `at://${ofProfile ?? ofPack}/${collection}/${rkey}`
}
