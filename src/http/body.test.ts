import { expect, test } from 'bun:test'
import { setImmediate } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { RequestBody } from './body.ts'
import { errorOf } from '../../tests/support/thrown.ts'

const MIB = 1024 ** 2

/** A packed body of 16 MiB, which arrives byte by byte, one in each turn of the event loop. */
const trickle = () => {
  const packed = gzipSync(Buffer.alloc(16 * MIB))
  let at = 0
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      await setImmediate()
      if (at === packed.length) controller.close()
      else controller.enqueue(packed.subarray(at, ++at))
    },
  })
  return new Request('http://localhost/', { method: 'POST', body, headers: { 'content-encoding': 'gzip' } })
}

test('a packed body is refused if it arrives too slowly, however much it unpacks to', async () => {
  const pace = { millis: 5, leastBytes: 64 * 1024, mostMillis: 60_000 }
  const read = Array.fromAsync(new RequestBody(trickle(), pace).stream(32 * MIB))
  expect(await errorOf(read)).toMatchObject({ status: 408, name: 'RequestTimeout' })
})

test('a packed body that arrives in small pieces is whole', async () => {
  const read = await Array.fromAsync(new RequestBody(trickle()).stream(32 * MIB))
  expect(Buffer.concat(read).equals(Buffer.alloc(16 * MIB))).toBe(true)
})
