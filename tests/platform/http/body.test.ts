/** Request bodies: bounded, decoded, whole. Endpoints of the test's own stand behind the real edge. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { connect } from 'node:net'
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import { createDispatcher } from '../../../src/http/dispatcher.ts'
import { route, subscription, type Socket } from '../../../src/http/endpoint.ts'
import { listen, type Listener } from '../../../src/http/listener.ts'
import { raw, request } from '../../support/clients/http.ts'
import { useWorld } from '../../support/world.ts'
import { until } from '../../support/until.ts'

const MAX_BYTES = 2000
const FRAME_BYTES = 1024 ** 2
const STREAMED_FRAMES = 400

let edge: Listener
let dropped = 0
/** Frames of the streamed body that the client has sent, and the most bytes between it and the handler. */
let pulled = 0
let mostOnTheWay = 0
let sent = 0
let drained = 0
let closed = 0

const endpoints = [
  route('POST', '/echo', { handler: async ({ body }) => ({ value: (await body.json(MAX_BYTES)) ?? null }) }),
  route('POST', '/v1/echo', { handler: async ({ body }) => ({ value: (await body.json(MAX_BYTES)) ?? null }) }),
  route('POST', '/count', {
    async handler({ body }) {
      let bytes = 0
      for await (const chunk of body.stream(STREAMED_FRAMES * FRAME_BYTES)) {
        bytes += chunk.byteLength
        mostOnTheWay = Math.max(mostOnTheWay, pulled * FRAME_BYTES - bytes)
      }
      return { bytes }
    },
  }),
  route('GET', '/address', { handler: ({ ip }) => ({ ip }) }),
  route('GET', '/fault', {
    handler() {
      throw new Error('the password is hunter2')
    },
  }),
  route('GET', '/large', { handler: () => ({ text: 'so long '.repeat(1000) }) }),
  subscription('com.atproto.sync.subscribeRepos', () => {
    let socket: Socket
    return {
      open(opened) {
        socket = opened
        while (socket.send(new Uint8Array(FRAME_BYTES))) sent++
        dropped++
      },
      drain: () => void drained++,
      closed: () => void closed++,
    }
  }),
]

const { pds } = useWorld()
beforeAll(() => {
  edge = listen({ ...pds.ctx.config, port: 0 }, createDispatcher(pds.ctx, endpoints))
})
afterAll(async () => {
  await edge.stop(1000)
})

const post = (
  path: string,
  body: string | Uint8Array<ArrayBuffer> | ReadableStream,
  headers: Record<string, string> = {},
) => request(edge.url + path, { method: 'POST', body, headers })

test('a body arrives as it was sent, in any coding and in stacked ones', async () => {
  const text = JSON.stringify({ text: 'höher '.repeat(100) })
  for (const [coding, bytes] of [
    ['identity', Buffer.from(text)],
    ['gzip', gzipSync(text)],
    ['deflate', deflateSync(text)],
    ['br', brotliCompressSync(text)],
    ['deflate, gzip', gzipSync(deflateSync(text))],
  ] as const) {
    const answer = await post('/echo', new Uint8Array(bytes), { 'content-encoding': coding })
    expect(answer).toMatchObject({ status: 200, body: { value: JSON.parse(text) } })
  }
})

test('a body above its bound is refused, announced, counted or unpacked', async () => {
  const refusal = { status: 413, body: 'request entity too large\n' }
  const big = `"${'x'.repeat(MAX_BYTES)}"`
  expect(await post('/echo', big)).toMatchObject(refusal)
  expect(
    await post('/echo', new ReadableStream({ start: (c) => (c.enqueue(new TextEncoder().encode(big)), c.close()) })),
  ).toMatchObject(refusal)
  expect(
    await post('/echo', new Uint8Array(gzipSync(Buffer.alloc(50 * FRAME_BYTES))), { 'content-encoding': 'gzip' }),
  ).toMatchObject(refusal)
  expect(await post('/v1/echo', big)).toMatchObject({ status: 413, body: { error: { code: 'PAYLOAD_TOO_LARGE' } } })
})

test('a body that is not what it says is a clear 400, a coding nobody knows a 415', async () => {
  expect(await post('/v1/echo', '{"a":')).toMatchObject({ status: 400, body: { error: { code: 'InvalidRequest' } } })
  expect(await post('/v1/echo', new Uint8Array([0x22, 0xff, 0xfe, 0x22]))).toMatchObject({
    status: 400,
    body: { error: { message: 'The body is not valid UTF-8' } },
  })
  expect(await post('/v1/echo', 'not gzip', { 'content-encoding': 'gzip' })).toMatchObject({ status: 400 })
  expect(await post('/v1/echo', '{}', { 'content-encoding': 'zstd' })).toMatchObject({ status: 415 })
})

test('an absurd Content-Length reaches no handler', async () => {
  for (const length of ['-1', 'abc', '99999999999999999999'])
    expect(
      await raw(
        edge.url,
        `POST /echo HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: ${length}\r\n\r\n{}`,
      ),
    ).not.toContain(' 200 ')
})

test('a large body streams through: the handler reads it while the client still sends', async () => {
  const chunk = new Uint8Array(FRAME_BYTES)
  const body = new ReadableStream({
    pull: (controller) => (pulled++ < STREAMED_FRAMES ? controller.enqueue(chunk) : controller.close()),
  })
  expect(await post('/count', body)).toMatchObject({ status: 200, body: { bytes: STREAMED_FRAMES * FRAME_BYTES } })
  // A body that was gathered first would all have been on the way.
  expect(mostOnTheWay).toBeLessThan((STREAMED_FRAMES / 4) * FRAME_BYTES)
})

test('a client that goes away in the middle of its body leaves the server well', async () => {
  await raw(edge.url, 'POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"half":', 50)
  expect(await post('/echo', '1')).toMatchObject({ status: 200, body: { value: 1 } })
})

test('the address of a client on a dual-stack listener is told without its prefix', async () => {
  const { body } = await request(`${edge.url}/address`)
  expect(body.ip).not.toContain('ffff')
  expect((await request(`${edge.url}/address`, { headers: { 'x-forwarded-for': '203.0.113.7' } })).body).toEqual({
    ip: '203.0.113.7',
  })
})

test('a fault of ours is told without its text', async () => {
  const answer = await request(`${edge.url}/fault`)
  expect(answer.status).toBe(500)
  expect(JSON.stringify(answer.body)).not.toContain('hunter2')
})

test('answers are packed for who asks, and not sent again to who has them', async () => {
  const packed = await fetch(`${edge.url}/large`, {
    headers: { 'accept-encoding': 'gzip' },
    decompress: false,
  } as RequestInit)
  expect(packed.headers.get('content-encoding')).toBe('gzip')
  expect((await packed.arrayBuffer()).byteLength).toBeLessThan(1000)
  const plain = await request(`${edge.url}/large`, { headers: { 'accept-encoding': 'identity' } })
  expect(plain.headers.get('content-encoding')).toBeNull()
  const etag = plain.headers.get('etag')!
  expect(await request(`${edge.url}/large`, { headers: { 'if-none-match': etag } })).toMatchObject({
    status: 304,
    body: '',
  })
})

test('a frame that a slow reader has no room for is reported, not lost in silence', async () => {
  const { port } = new URL(edge.url)
  const socket = connect(Number(port), '127.0.0.1')
  socket.pause()
  socket.write(
    'GET /xrpc/com.atproto.sync.subscribeRepos HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n' +
      'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
  )
  await until(() => dropped > 0)
  expect(dropped).toBe(1)
  expect(sent).toBeGreaterThan(10)
  socket.on('data', () => {})
  socket.resume()
  await until(() => drained > 0)
  socket.destroy()
  await until(() => closed > 0)
})

test('a subscription without an upgrade is no endpoint', async () => {
  expect(await request(`${edge.url}/xrpc/com.atproto.sync.subscribeRepos`)).toMatchObject({
    status: 501,
    body: { error: 'MethodNotImplemented' },
  })
})
