/** An AppView for measurements, to which servers forward requests: it has indexed all that callers wrote. */
import { randomBytes } from 'node:crypto'
import { gzipSync } from 'node:zlib'

/** A method whose response has no length. */
export const streamedMethod = 'app.bsky.feed.searchPosts'

/** A revision after all that there are. */
const INDEXED_ALL = '3zzzzzzzzzzzz'

/** Every response is the same page, compressed. */
export function startMeasuredAppview() {
  const page = gzipSync(JSON.stringify({ cursor: randomBytes(6000).toString('hex') }))
  return Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch({ url }) {
      const isStreamed = url.includes(streamedMethod)
      const body = isStreamed ? new ReadableStream({ start: (sink) => (sink.enqueue(page), sink.close()) }) : page
      return new Response(body, {
        headers: {
          'content-type': 'application/json; charset=utf-8',
          'content-encoding': 'gzip',
          'atproto-repo-rev': INDEXED_ALL,
        },
      })
    },
  })
}
