/**
 * An S3 store in memory, in a thread of its own. It answers as the large ones do, after a while: `workerData` has its
 * milliseconds, and the memory in which it counts the objects that it was sent.
 */
import { parentPort, workerData } from 'node:worker_threads'

const { millis, stored } = workerData as { millis: number; stored: SharedArrayBuffer }
const count = new Int32Array(stored)
const objects = new Map<string, Uint8Array<ArrayBuffer>>()
const tagOf = (bytes: Uint8Array) => `"${new Bun.CryptoHasher('md5').update(bytes).digest('hex')}"`

const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  async fetch(request) {
    const url = new URL(request.url)
    const key = url.pathname
    const found = objects.get(key)
    if (request.method === 'PUT') {
      Atomics.add(count, 0, 1)
      const bytes = new Uint8Array(await request.arrayBuffer())
      await Bun.sleep(millis)
      const match = request.headers.get('if-match')
      if (request.headers.get('if-none-match') === '*' && objects.has(key)) return new Response(null, { status: 412 })
      if (match !== null && (found === undefined || tagOf(found) !== match)) return new Response(null, { status: 412 })
      objects.set(key, bytes)
      return new Response(null, { headers: { etag: tagOf(bytes) } })
    }
    if (url.searchParams.has('list-type'))
      return new Response('<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>')
    if (request.method === 'DELETE') objects.delete(key)
    if (found === undefined) return new Response(null, { status: request.method === 'DELETE' ? 204 : 404 })
    return new Response(found, { headers: { etag: tagOf(found) } })
  },
})
parentPort!.postMessage(server.port)
