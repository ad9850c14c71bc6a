/** Large objects over a slow link: a transfer may take long, and is given up when it stalls. */
import { createServer, type Socket } from 'node:net'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, spyOn, test } from 'bun:test'
import { Secret } from '../../../src/base/secret.ts'
import { Bucket, uploadTimeoutMillis } from '../../../src/platform/network/bucket.ts'
import { thrownBy } from '../../support/thrown.ts'

/** Shorter than the transfer below takes. */
const STALL_MILLIS = 2000

const pace = (millis: number) => ({ millis, leastBytes: 1, mostMillis: 60_000 })

/** A store that speaks slowly: what is done with each connection is up to the test. */
async function slowly(serve: (socket: Socket) => Promise<void>, millis = STALL_MILLIS) {
  const sockets = new Set<Socket>()
  const store = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    void serve(socket)
  })
  await new Promise<void>((resolve) => store.listen(0, '127.0.0.1', resolve))
  const endpoint = `http://127.0.0.1:${(store.address() as AddressInfo).port}`
  const keys = { accessKeyId: 'key', secretAccessKey: new Secret('secret'), region: 'auto', forcePathStyle: true }
  return {
    bucket: new Bucket({ bucket: 'blobs', endpoint, ...keys }, undefined, pace(millis)),
    [Symbol.asyncDispose]: () => {
      for (const socket of sockets) socket.destroy()
      return new Promise<void>((resolve) => store.close(() => resolve()))
    },
  }
}

test('an object that arrives slowly is read to its end', async () => {
  const chunks = 50
  await using slow = await slowly(async (socket) => {
    socket.resume()
    socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${chunks}\r\n\r\n`)
    for (let i = 0; i < chunks; i++) {
      socket.write('x')
      await sleep(100)
    }
  })
  const content = await Array.fromAsync((await slow.bucket.get('large'))!)
  expect(Buffer.concat(content).toString()).toBe('x'.repeat(chunks))
})

test('the time that a reader takes for what it has is not that of the store', async () => {
  await using slow = await slowly(async (socket) => {
    socket.resume()
    socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nx')
    await sleep(400)
    socket.write('x')
  }, 300)
  const content: string[] = []
  for await (const chunk of (await slow.bucket.get('large'))!) {
    await sleep(500)
    content.push(Buffer.from(chunk).toString())
  }
  expect(content.join('')).toBe('xx')
})

test('an object of which nothing more arrives is given up', async () => {
  await using slow = await slowly(async (socket) => {
    socket.resume()
    socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nx')
  }, 300)
  const content = (await slow.bucket.get('large'))!
  expect(await thrownBy(Array.fromAsync(content))).toThrow('the bucket does not respond')
})

test('an upload has the time that a slow link needs, without a bound of the runtime', async () => {
  const gibibyte = 1024 ** 3
  expect(uploadTimeoutMillis({ size: gibibyte }) / 1000).toBeGreaterThan(gibibyte / (33 * 1024))
  expect(uploadTimeoutMillis({ size: 8 * 1024 ** 2 }) / 1000).toBeGreaterThan((8 * 1024) / 40)
  expect(uploadTimeoutMillis({ size: 1024 ** 2 })).toBe(18_000)
  await using slow = await slowly(async (socket) => {
    socket.resume()
    socket.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n')
  })
  using fetched = spyOn(globalThis, 'fetch')
  await slow.bucket.delete('key')
  expect(fetched.mock.calls.map(([, how]) => (how as { timeout?: unknown }).timeout)).toEqual([false])
})

test('a download that only trickles is given up', async () => {
  await using slow = await slowly(async (socket) => {
    socket.resume()
    socket.write('HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n')
    while (!socket.destroyed) {
      socket.write('x')
      await sleep(20)
    }
  }, 300)
  const content = (await slow.bucket.get('large'))!
  slow.bucket.pace.leastBytes = 1000
  expect(await thrownBy(Array.fromAsync(content))).toThrow('the bucket does not respond')
})
