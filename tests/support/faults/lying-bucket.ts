/** A bucket that cannot be relied on. */
import type { BucketHost } from '../servers/bucket-host.ts'

const SLOW_MILLIS = 60

/** By turns it is slow, stores something and breaks off the connection, and lists no segments. */
export function lie(bucket: BucketHost): void {
  let requests = 0
  bucket.intercept = (incoming, response, key) => {
    const turn = ++requests
    if (turn % 11 === 0) {
      setTimeout(() => bucket.pass(incoming, response), SLOW_MILLIS)
      return true
    }
    if (turn % 7 === 0 && incoming.method === 'PUT' && key !== '') {
      response.writeHead = () => response
      response.end = () => {
        incoming.socket.destroy()
        return response
      }
      bucket.pass(incoming, response)
      return true
    }
    if (turn % 2 === 0 && incoming.method === 'GET' && (incoming.url ?? '').includes('list-type')) {
      const contents = bucket
        .keys()
        .filter((each) => !each.includes('/segment-'))
        .map((each) => `<Contents><Key>${each}</Key><Size>1</Size></Contents>`)
      response
        .writeHead(200, { 'content-type': 'application/xml' })
        .end(`<ListBucketResult><IsTruncated>false</IsTruncated>${contents.join('')}</ListBucketResult>`)
      return true
    }
    return false
  }
}
