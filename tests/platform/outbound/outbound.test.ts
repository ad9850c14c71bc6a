import { expect, test } from 'bun:test'
import { brotliCompressSync, constants } from 'node:zlib'
import {
  arrivedBody,
  createOutbound,
  OutboundError,
  type OutboundFault,
  type OutboundOptions,
} from '../../../src/platform/network/outbound.ts'
import { startWebHost } from '../../support/servers/did-web-host.ts'
import { fakeDns } from '../../support/servers/dns.ts'
import { memoryMiB } from '../../support/process-memory.ts'
import { startRawUpstream } from '../../support/servers/upstream.ts'
import { setUp } from '../../support/set-up.ts'
import { errorOf } from '../../support/thrown.ts'

const web = setUp(() => startWebHost())
const dns = fakeDns()
for (const host of ['web.test', 'a.web.test', 'b.web.test', 'other.test']) dns.setAddresses(host, '127.0.0.1')

const client = (changes: Partial<OutboundOptions> = {}) =>
  createOutbound({
    resolver: dns,
    reach: 'loopback',
    httpsPort: web.port,
    certificateAuthorities: web.authority,
    ...changes,
  })

const outbound = setUp(() => client())

const gzip = (bytes: string | Uint8Array<ArrayBuffer>) => new Uint8Array(Bun.gzipSync(bytes))

async function faultOf(promise: Promise<Response>): Promise<OutboundFault | 'none'> {
  try {
    await (await promise).arrayBuffer()
    return 'none'
  } catch (error) {
    if (error instanceof OutboundError) return error.fault
    throw error
  }
}

test('a page is fetched by its name, over TLS, from the address that was checked', async () => {
  web.publish('a.web.test', '/page', (request) =>
    Response.json({
      host: request.headers.get('host'),
      path: new URL(request.url).pathname + new URL(request.url).search,
    }),
  )
  const response = await outbound.fetch('https://a.web.test/page?q=%20x&y')
  expect(await response.json()).toEqual({ host: 'a.web.test', path: '/page?q=%20x&y' })
})

test('two names on one address never share a certificate check', async () => {
  web.publish('a.web.test', '/', 'a')
  web.publish('other.test', '/', 'never')
  expect(await (await outbound.fetch('https://a.web.test/')).text()).toBe('a')
  expect(await faultOf(outbound.fetch('https://other.test/'))).toBe('unreachable')
  expect(web.requests).not.toContain('other.test/')
})

test('an authority that is not trusted ends the connection', async () => {
  const strict = client({ certificateAuthorities: undefined })
  expect(await faultOf(strict.fetch('https://b.web.test/'))).toBe('unreachable')
})

const privateAddresses = [
  '127.0.0.1',
  '10.1.2.3',
  '192.168.0.1',
  '169.254.169.254',
  '100.64.0.1',
  '::1',
  'fd00::1',
  'fe80::1',
  '::ffff:127.0.0.1',
  '64:ff9b::7f00:1',
  '0.0.0.0',
]
for (const address of privateAddresses) {
  test(`a name that means ${address} is refused in production`, async () => {
    dns.setAddresses('inside.web.test', address)
    expect(await faultOf(client({ reach: 'public' }).fetch('https://inside.web.test/'))).toBe('refused')
  })
}

test('one private address among public ones is enough to refuse', async () => {
  dns.setAddresses('mixed.web.test', '93.184.216.34', '10.0.0.1')
  expect(await faultOf(client({ reach: 'public' }).fetch('https://mixed.web.test/'))).toBe('refused')
  dns.setAddresses('mixed.web.test', '127.0.0.1', '10.0.0.1')
  expect(await faultOf(outbound.fetch('https://mixed.web.test/'))).toBe('refused')
})

const refusedUrls = [
  'http://web.test/',
  'https://127.0.0.1/',
  'https://[::1]/',
  'https://2130706433/',
  'https://0x7f.1/',
  'https://8.8.8.8/',
  'https://user:pw@web.test/',
  'ftp://web.test/',
  'file:///etc/passwd',
  'data:text/plain,x',
  'web.test',
  '',
  'https://' + 'a'.repeat(9000),
]
for (const url of refusedUrls) {
  test(`${url.slice(0, 40) || 'an empty URL'} is refused in production`, async () => {
    const before = web.requests.length
    expect(['refused', 'unresolved']).toContain(await faultOf(client({ reach: 'public' }).fetch(url)))
    expect(web.requests.length).toBe(before)
  })
}

test('a name that changes its address after the check cannot move the connection', async () => {
  web.publish('rebind.web.test', '/', 'inside')
  const answers = [['127.0.0.2'], ['127.0.0.1']]
  let lookups = 0
  const rebinding = client({ resolver: { ...dns, addresses: async () => answers[Math.min(lookups++, 1)]! } })
  const before = web.requests.length
  expect(await faultOf(rebinding.fetch('https://rebind.web.test/'))).toBe('unreachable')
  expect(lookups).toBe(1)
  expect(web.requests.length).toBe(before)
})

test('the next address is tried when the first refuses the connection', async () => {
  dns.setAddresses('two.web.test', '127.0.0.2', '127.0.0.1')
  web.publish('two.web.test', '/', 'second')
  expect(await (await outbound.fetch('https://two.web.test/')).text()).toBe('second')
})

test('a name without an address is unresolved', async () => {
  expect(await faultOf(outbound.fetch('https://nowhere.test/'))).toBe('unresolved')
})

test('name resolution counts against the time limit', async () => {
  const silent = client({ resolver: { ...dns, addresses: () => new Promise<string[]>(() => undefined) } })
  expect(await faultOf(silent.fetch('https://web.test/', { headersTimeoutMillis: 20 }))).toBe('timeout')
})

test('a redirect is an answer, unless redirects are allowed', async () => {
  web.publish('a.web.test', '/from', () => Response.redirect('https://b.web.test/to', 302))
  web.publish('b.web.test', '/to', 'there')
  expect((await outbound.fetch('https://a.web.test/from')).status).toBe(302)
  expect(await (await outbound.fetch('https://a.web.test/from', { maxRedirects: 1 })).text()).toBe('there')
  expect((await outbound.fetch('https://a.web.test/from', { maxRedirects: 1, method: 'POST', body: 'x' })).status).toBe(
    302,
  )
})

for (const location of [
  'https://metadata.web.test/',
  'http://b.web.test/to',
  'https://169.254.169.254/latest',
  'https://localhost./',
  'file:///etc/passwd',
  '//[fd00::1]/',
]) {
  test(`a redirect to ${location} is refused`, async () => {
    dns.setAddresses('metadata.web.test', '169.254.169.254')
    dns.setAddresses('b.web.test', '10.0.0.1')
    dns.setAddresses('localhost.', '10.0.0.2')
    web.publish('a.web.test', '/away', () => new Response(null, { status: 307, headers: { location } }))
    expect(await faultOf(outbound.fetch('https://a.web.test/away', { maxRedirects: 3 }))).toBe('refused')
    dns.setAddresses('b.web.test', '127.0.0.1')
  })
}

test('a redirect circle ends', async () => {
  web.publish('a.web.test', '/loop', () => new Response(null, { status: 302, headers: { location: '/loop' } }))
  const before = web.requests.length
  expect(await faultOf(outbound.fetch('https://a.web.test/loop', { maxRedirects: 3 }))).toBe('redirects')
  expect(web.requests.length - before).toBe(4)
})

test('a body may be as long as allowed and no longer, declared or not', async () => {
  const chunk = new Uint8Array(600)
  const chunked = () =>
    new Response(
      new ReadableStream({
        start: (controller) => (controller.enqueue(chunk), controller.enqueue(chunk), controller.close()),
      }),
    )
  web.publish('a.web.test', '/declared', () => new Response(new Uint8Array(1200)))
  web.publish('a.web.test', '/chunked', chunked)
  web.publish(
    'a.web.test',
    '/bomb',
    () => new Response(gzip(new Uint8Array(1200)), { headers: { 'content-encoding': 'gzip' } }),
  )
  for (const path of ['declared', 'chunked', 'bomb']) {
    expect(await faultOf(outbound.fetch(`https://a.web.test/${path}`, { maxBytes: 1199 }))).toBe('too-large')
    expect((await (await outbound.fetch(`https://a.web.test/${path}`, { maxBytes: 1200 })).bytes()).length).toBe(1200)
  }
})

for (const stated of [0, 10]) {
  test(`a body in chunks has its bound also if its response states a length of ${stated}`, async () => {
    const chunk = `ff\r\n${'x'.repeat(255)}\r\n`
    await using upstream = startRawUpstream(
      `HTTP/1.1 200 OK\r\ncontent-length: ${stated}\r\ntransfer-encoding: chunked\r\n\r\n${chunk.repeat(8)}0\r\n\r\n`,
    )
    for (const raw of [false, true]) {
      const response = await outbound.fetch(upstream.url, { maxBytes: 2040, raw })
      expect(response.headers.get('content-length')).toBeNull()
      expect((await response.text()).length).toBe(2040)
      expect(await faultOf(outbound.fetch(upstream.url, { maxBytes: 2039, raw }))).toBe('too-large')
    }
  })
}

test.each(['000', '099', '600', '999'])('a response of the status %s is none', async (status) => {
  for (const head of ['content-length: 1\r\n\r\nx', 'transfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n']) {
    await using upstream = startRawUpstream(`HTTP/1.1 ${status} Odd\r\n${head}`)
    for (const raw of [false, true]) expect(await faultOf(outbound.fetch(upstream.url, { raw }))).toBe('unreachable')
  }
})

test('of some hundred bytes that stand for half a gigabyte, no more is decoded than is wanted', async () => {
  const bomb = brotliCompressSync(new Uint8Array(512 * 1024 ** 2), { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } })
  expect(bomb.length).toBeLessThan(1024)
  web.publish('a.web.test', '/brotli', () => new Response(bomb, { headers: { 'content-encoding': 'br' } }))
  Bun.gc(true)
  const before = memoryMiB(process.pid, 'VmRSS')
  const faults = Array.from({ length: 8 }, () =>
    faultOf(outbound.fetch('https://a.web.test/brotli', { maxBytes: 64 * 1024 })),
  )
  expect(new Set(await Promise.all(faults))).toEqual(new Set(['too-large']))
  expect(memoryMiB(process.pid, 'VmRSS') - before).toBeLessThan(256)
  await (await outbound.fetch('https://a.web.test/brotli')).body!.cancel()
})

test('what is coded in an unknown way, or not as its header says, cannot be read', async () => {
  const coded = (coding: string, bytes: Uint8Array<ArrayBuffer>) => () =>
    new Response(bytes, { headers: { 'content-encoding': coding } })
  web.publish('a.web.test', '/twice', coded('gzip, gzip', gzip(gzip('hello'))))
  web.publish('a.web.test', '/unknown', coded('lz4', gzip('hello')))
  web.publish('a.web.test', '/thrice', coded('gzip, gzip, gzip', gzip(gzip(gzip('hello')))))
  web.publish('a.web.test', '/false', coded('gzip', new Uint8Array(100)))
  web.publish('a.web.test', '/cut', coded('gzip', gzip('hello').slice(0, -6)))
  expect(await (await outbound.fetch('https://a.web.test/twice')).text()).toBe('hello')
  for (const path of ['unknown', 'thrice', 'false', 'cut'])
    expect(await faultOf(outbound.fetch(`https://a.web.test/${path}`))).toBe('unreachable')
})

test('a body keeps its encoding when asked for raw, and loses the header when not', async () => {
  web.publish('a.web.test', '/gzip', () => new Response(gzip('hello'), { headers: { 'content-encoding': 'gzip' } }))
  const raw = await outbound.fetch('https://a.web.test/gzip', { raw: true })
  expect(raw.headers.get('content-encoding')).toBe('gzip')
  expect(Buffer.from(Bun.gunzipSync(new Uint8Array(arrivedBody(raw)!))).toString()).toBe('hello')
  const plain = await outbound.fetch('https://a.web.test/gzip')
  expect(plain.headers.get('content-encoding')).toBeNull()
  expect(await plain.text()).toBe('hello')
})

test('headers and bodies that never come end in a timeout', async () => {
  const never = new Promise<Response>(() => undefined)
  web.publish('a.web.test', '/silent', () => never)
  web.publish(
    'a.web.test',
    '/stuck',
    () => new Response(new ReadableStream({ start: (controller) => controller.enqueue(new Uint8Array(10)) })),
  )
  expect(await faultOf(outbound.fetch('https://a.web.test/silent', { headersTimeoutMillis: 50 }))).toBe('timeout')
  expect(await faultOf(outbound.fetch('https://a.web.test/stuck', { bodyTimeoutMillis: 50 }))).toBe('timeout')
})

test('the caller can end the request, and the other side learns of it', async () => {
  const upstream = Promise.withResolvers<void>()
  web.publish('a.web.test', '/endless', (request) => {
    request.signal.addEventListener('abort', () => upstream.resolve())
    return new Response(new ReadableStream({ start: (controller) => controller.enqueue(new Uint8Array(10)) }))
  })
  const abort = new AbortController()
  const response = await outbound.fetch('https://a.web.test/endless', { signal: abort.signal })
  const gone = new Error('client went away')
  abort.abort(gone)
  expect(await errorOf(response.arrayBuffer())).toBe(gone)
  await upstream.promise
  expect(await errorOf(outbound.fetch('https://a.web.test/endless', { signal: abort.signal }))).toBe(gone)
})

test('a request body and its headers arrive', async () => {
  web.publish('a.web.test', '/echo', async (request) =>
    Response.json({ method: request.method, type: request.headers.get('content-type'), text: await request.text() }),
  )
  const sent = { method: 'POST', headers: { 'content-type': 'text/x' } }
  for (const body of ['hello', new TextEncoder().encode('hello'), new Response('hello').body!]) {
    const response = await outbound.fetch('https://a.web.test/echo', { ...sent, body })
    expect(await response.json()).toEqual({ method: 'POST', type: 'text/x', text: 'hello' })
  }
})

test('development may use plain http on loopback, and only there', async () => {
  const plain = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response('plain') })
  expect(await (await outbound.fetch(`http://localhost:${plain.port}/`)).text()).toBe('plain')
  expect(await (await outbound.fetch(`http://127.0.0.1:${plain.port}/`)).text()).toBe('plain')
  dns.setAddresses('public.test', '93.184.216.34')
  expect(await faultOf(outbound.fetch('http://public.test/'))).toBe('refused')
  await plain.stop(true)
  expect(await faultOf(outbound.fetch(`http://127.0.0.1:${plain.port}/`))).toBe('unreachable')
})

test('what the operator named may be anywhere', async () => {
  const inside = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response('inside') })
  const trusted = client({ reach: 'anywhere' })
  expect(await (await trusted.fetch(`http://web.test:${inside.port}/`)).text()).toBe('inside')
  expect(await (await trusted.fetch(`http://[::ffff:127.0.0.1]:${inside.port}/`)).text()).toBe('inside')
  expect(await faultOf(trusted.fetch('file:///etc/passwd'))).toBe('refused')
  await inside.stop(true)
})
