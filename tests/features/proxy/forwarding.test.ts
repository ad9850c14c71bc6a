/** Requests for methods that other services answer. */
import { beforeAll, expect, test } from 'bun:test'
import { connect } from 'node:net'
import { gzipSync } from 'node:zlib'
import { verifyJwt } from '@atproto/xrpc-server'
import { request } from '../../support/clients/http.ts'
import type { SessionKind } from '../../../src/features/access/callers/callers.ts'
import { startRawUpstream, startUpstream, tokenClaims } from '../../support/servers/upstream.ts'
import { seedAccount, type SeededAccount } from '../../support/clients/seed-account.ts'
import { until } from '../../support/until.ts'
import { useWorld } from '../../support/world.ts'
import { atOneNode } from '../../support/turns.ts'
import { thrownBy } from '../../support/thrown.ts'

let alice: SeededAccount
/** What alice shows to say who asks. */
let full: { authorization: string }
const { pds, appview, chat, other } = useWorld({ appview: true, chat: true, other: true })
beforeAll(async () => {
  other.services['test_service'] = other.url
  other.services['test_private'] = 'http://10.1.2.3'
  other.services['test_intranet'] = 'https://intranet.test'
  pds.dns.setAddresses('intranet.test', '10.0.0.1')
  alice = await seedAccount(pds, 'alice')
  full = await alice.as('full')
})

const xrpc = (path: string, init: Parameters<typeof request>[1] = {}) =>
  request(`${pds.url}/xrpc/${path}`, { ...init, headers: { ...full, ...(init.headers as Record<string, string>) } })
const targeting = (service: string) => ({ headers: { 'atproto-proxy': service } })
const asked = () => [appview, chat, other].reduce((count, { received }) => count + received.length, 0)

// Where requests go

test('social methods go to the AppView and direct messages to the chat service', async () => {
  expect(await xrpc('app.bsky.graph.getFollows?actor=alice.test')).toMatchObject({
    status: 200,
    body: { path: '/xrpc/app.bsky.graph.getFollows?actor=alice.test' },
  })
  expect(await xrpc('chat.bsky.convo.listConvos')).toMatchObject({
    status: 200,
    body: { path: '/xrpc/chat.bsky.convo.listConvos' },
  })
  expect([appview.received.length, chat.received.length]).toEqual([1, 1])
  expect(appview.received[0]!.headers.get('atproto-proxy')).toBe('did:web:appview.test#bsky_appview')
  expect(chat.received[0]!.headers.get('atproto-proxy')).toBe('did:web:chat.test#bsky_chat')
})

test('configured services are reached by name without looking up their DID', async () => {
  expect((await xrpc('com.example.anything', targeting('did:web:chat.test#bsky_chat'))).status).toBe(200)
  expect(chat.received.length).toBe(1)
})

test('a request that names a service goes where its DID document says', async () => {
  expect((await xrpc('app.bsky.graph.getFollows?actor=a', targeting(`${other.did}#test_service`))).status).toBe(200)
  expect(other.received[0]!.path).toBe('/xrpc/app.bsky.graph.getFollows?actor=a')
  expect(other.received[0]!.headers.has('atproto-proxy')).toBe(false)
  expect(appview.received.length).toBe(0)
})

test.each([
  'com.example.feed.getThings',
  'com.atproto.server.unheardOf',
  'com.atproto.repo.unheardOf',
  'app.bskyx.feed.getThings',
])('%s goes nowhere unless the request says where', async (nsid) => {
  expect(await xrpc(nsid)).toMatchObject({
    status: 400,
    body: { error: 'InvalidRequest', message: `No service configured for ${nsid}` },
  })
  expect(asked()).toBe(0)
})

test('path and query pass as they are written', async () => {
  await xrpc('app.bsky.feed.searchPosts/?q=%7Efoo+bar%20%2F&tag=a&tag=b&empty=')
  expect(appview.received[0]!.path).toBe('/xrpc/app.bsky.feed.searchPosts/?q=%7Efoo+bar%20%2F&tag=a&tag=b&empty=')
})

// What they carry

test('the token is signed by the account for one service and one method', async () => {
  await xrpc('app.bsky.graph.getFollows?actor=a')
  const token = appview.received[0]!.headers.get('authorization')!.replace('Bearer ', '')
  await verifyJwt(token, 'did:web:appview.test', 'app.bsky.graph.getFollows', async () => alice.signingKey)
  const { iat, exp, jti, ...claims } = tokenClaims(appview.received[0]!)
  expect(claims).toEqual({ iss: alice.did, aud: 'did:web:appview.test', lxm: 'app.bsky.graph.getFollows' })
  expect(Number(exp) - Number(iat)).toBe(60)
  expect(jti).toMatch(/^[0-9a-f]{32}$/)
  expect(JSON.parse(Buffer.from(token.split('.')[0]!, 'base64url').toString())).toEqual({ typ: 'JWT', alg: 'ES256' })
})

test('only headers about the answer wanted and the body pass, and those for services', async () => {
  const passed = {
    'accept-language': 'de',
    'atproto-accept-labelers': 'did:web:labels.test',
    'x-bsky-topics': 'cats',
    'x-atproto-bsky-topics': 'dogs',
    'x-atproto-anything': 'else',
  }
  await xrpc('app.bsky.graph.getFollows?actor=a', {
    headers: {
      ...passed,
      cookie: 'session=secret',
      'user-agent': 'browser/1',
      'x-forwarded-for': '198.51.100.7',
      'if-none-match': '"x"',
      range: 'bytes=0-1',
      origin: 'https://app.test',
      dpop: 'proof',
      'x-atproto': 'no prefix',
      'x-other': 'other',
    },
  })
  const { headers } = appview.received[0]!
  expect(Object.fromEntries(Object.keys(passed).map((name) => [name, headers.get(name)]))).toEqual(passed)
  for (const name of ['cookie', 'x-forwarded-for', 'if-none-match', 'range', 'origin', 'dpop', 'x-atproto', 'x-other'])
    expect(headers.has(name)).toBe(false)
  expect(headers.get('user-agent')).not.toContain('browser')
  expect(headers.get('authorization')).not.toContain(full.authorization)
})

test('a body passes as it was sent, coding and all', async () => {
  const bytes = gzipSync(JSON.stringify({ hello: 'world' }))
  let got: { body: Uint8Array; headers: Headers } | null = null
  chat.answer('chat.bsky.convo.sendMessage', async (incoming) => {
    got = { body: await incoming.bytes(), headers: incoming.headers }
    return Response.json({})
  })
  const headers = { 'content-type': 'application/weird', 'content-encoding': 'gzip' }
  expect((await xrpc('chat.bsky.convo.sendMessage', { method: 'POST', body: bytes, headers })).status).toBe(200)
  expect(Buffer.compare(got!.body, bytes)).toBe(0)
  expect(got!.headers.get('content-type')).toBe('application/weird')
  expect(got!.headers.get('content-encoding')).toBe('gzip')
  expect(got!.headers.get('content-length')).toBe(String(bytes.length))
})

test('a browser runs nothing of what a service sends', async () => {
  const page = () => new Response('<script>alert(1)</script>', { headers: { 'content-type': 'text/html' } })
  appview.answer('app.bsky.feed.getTimeline', page)
  appview.answer('app.bsky.graph.getFollows', page)
  for (const path of ['app.bsky.feed.getTimeline', 'app.bsky.graph.getFollows?actor=alice.test']) {
    const { status, headers } = await xrpc(path)
    expect({ status, type: headers.get('content-type') }).toEqual({ status: 200, type: 'text/html' })
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    expect(headers.get('content-security-policy')).toBe("default-src 'none'; sandbox")
  }
})

test('a HEAD request is forwarded as HEAD', async () => {
  expect((await xrpc('app.bsky.graph.getFollows?actor=a', { method: 'HEAD' })).status).toBe(200)
  expect(appview.received[0]!.method).toBe('HEAD')
})

// Streaming

test('the answer begins before the other side has finished', async () => {
  const { promise: mayFinish, resolve: finish } = Promise.withResolvers<void>()
  appview.answer('app.bsky.test.slowAnswer', () => {
    async function* body() {
      yield Buffer.from('first ')
      await mayFinish
      yield Buffer.from('second')
    }
    return new Response(body() as unknown as ReadableStream, {
      headers: { 'content-type': 'application/octet-stream' },
    })
  })
  const response = await fetch(`${pds.url}/xrpc/app.bsky.test.slowAnswer`, { headers: full })
  const reader = response.body!.getReader()
  expect(Buffer.from((await reader.read()).value!).toString()).toBe('first ')
  finish()
  expect(Buffer.from((await reader.read()).value!).toString()).toBe('second')
})

test('a request body begins to arrive before it is complete', async () => {
  const { promise: firstArrived, resolve: arrived } = Promise.withResolvers<string>()
  appview.answer('app.bsky.test.slowUpload', async (incoming) => {
    let text = ''
    for await (const chunk of incoming.body!) {
      text += Buffer.from(chunk).toString()
      arrived(text)
    }
    return Response.json({ text })
  })
  async function* body() {
    yield Buffer.from('first ')
    await firstArrived
    yield Buffer.from('second')
  }
  const response = await fetch(`${pds.url}/xrpc/app.bsky.test.slowUpload`, {
    method: 'POST',
    headers: { ...full, 'content-type': 'text/plain' },
    body: body() as unknown as ReadableStream,
  })
  expect(await response.json()).toEqual({ text: 'first second' })
})

test.each(['before the answer', 'in the middle of the answer'])(
  'a client that leaves %s takes the other request with it',
  async (when) => {
    const nsid = when.startsWith('before') ? 'app.bsky.test.neverAnswers' : 'app.bsky.test.neverEnds'
    const { promise: arrived, resolve } = Promise.withResolvers<void>()
    appview.answer('app.bsky.test.neverAnswers', (_, { aborted }) => {
      resolve()
      return aborted.then(() => new Response())
    })
    appview.answer('app.bsky.test.neverEnds', (_, { aborted }) => {
      async function* body() {
        yield Buffer.from('x')
        await aborted
      }
      return new Response(body() as unknown as ReadableStream)
    })
    const abort = new AbortController()
    const asking = fetch(`${pds.url}/xrpc/${nsid}`, { headers: full, signal: abort.signal })
    if (nsid.endsWith('neverEnds')) {
      const reader = (await asking).body!.getReader()
      await reader.read()
      abort.abort()
      expect(await thrownBy(reader.read())).toThrow()
    } else {
      await arrived
      abort.abort()
      expect(await thrownBy(asking)).toThrow()
    }
    await appview.received[0]!.aborted
  },
)

// What comes back

test('a success passes with the headers that belong to it', async () => {
  const bytes = gzipSync(JSON.stringify({ a: 'b' }))
  appview.answer('app.bsky.test.headers', () => {
    const headers = {
      'content-type': 'application/json',
      'content-encoding': 'gzip',
      'content-language': 'de',
      'atproto-repo-rev': '3abc',
      'atproto-content-labelers': 'did:web:l',
      'retry-after': '3',
    }
    return new Response(bytes, {
      status: 203,
      headers: {
        ...headers,
        'set-cookie': 'a=b',
        'www-authenticate': 'Bearer',
        'dpop-nonce': 'x',
        server: 'x',
        'cache-control': 'public',
        'access-control-allow-origin': 'https://x',
      },
    })
  })
  const { status, headers, body } = await xrpc('app.bsky.test.headers')
  expect({ status, body }).toEqual({ status: 203, body: { a: 'b' } })
  expect(headers.get('content-language')).toBe('de')
  expect(headers.get('atproto-repo-rev')).toBe('3abc')
  expect(headers.get('atproto-content-labelers')).toBe('did:web:l')
  expect(headers.get('retry-after')).toBe('3')
  for (const name of ['set-cookie', 'www-authenticate', 'dpop-nonce', 'server']) expect(headers.has(name)).toBe(false)
  expect(headers.get('cache-control')).toBe('private')
  expect(headers.get('access-control-allow-origin')).toBe('*')
  expect(headers.get('vary')).toContain('Authorization')
})

test('coded bytes are not touched on their way', async () => {
  const bytes = gzipSync('not even json')
  appview.answer(
    'app.bsky.test.coded',
    () => new Response(bytes, { headers: { 'content-type': 'text/plain', 'content-encoding': 'gzip' } }),
  )
  const response = await fetch(`${pds.url}/xrpc/app.bsky.test.coded`, {
    headers: { ...full, 'accept-encoding': 'gzip;q=0.5, br' },
    decompress: false,
  })
  expect(appview.received[0]!.headers.get('accept-encoding')).toBe('gzip;q=0.5, br')
  expect(response.headers.get('content-encoding')).toBe('gzip')
  expect(response.headers.get('content-length')).toBe(String(bytes.length))
  expect(Buffer.compare(await response.bytes(), bytes)).toBe(0)
})

test.each([301, 302, 304, 307])('a %i is passed on and not followed', async (status) => {
  appview.answer(
    'app.bsky.test.elsewhere',
    () => new Response(null, { status, headers: { location: `${other.url}/xrpc/x` } }),
  )
  const answer = await xrpc('app.bsky.test.elsewhere')
  expect(answer.status).toBe(status)
  expect(answer.headers.has('location')).toBe(false)
  expect(other.received.length).toBe(0)
})

const failures: [string, () => Response, number, string, string][] = [
  [
    'an error by its name',
    () => Response.json({ error: 'NotFoundy', message: 'no such thing' }, { status: 400 }),
    400,
    'NotFoundy',
    'no such thing',
  ],
  [
    'an error of authentication',
    () => Response.json({ error: 'BadJwt', message: 'no' }, { status: 401 }),
    401,
    'BadJwt',
    'no',
  ],
  [
    'a name that is longer than names are',
    () => Response.json({ error: 'x'.repeat(129), message: 'no such thing' }, { status: 400 }),
    400,
    'InvalidRequest',
    'no such thing',
  ],
  ['a name without a text', () => Response.json({ error: 'Odd' }, { status: 404 }), 404, 'Odd', 'XRPC Not Supported'],
  [
    'members that are no text',
    () => Response.json({ error: 5, message: {} }, { status: 429 }),
    429,
    'RateLimitExceeded',
    'Rate Limit Exceeded',
  ],
  [
    'a 500 as a bad gateway',
    () => Response.json({ error: 'InternalServerError', message: 'oops' }, { status: 500 }),
    502,
    'InternalServerError',
    'oops',
  ],
  [
    'a 500 that is a page',
    () => new Response('<h1>stack trace</h1>', { status: 500, headers: { 'content-type': 'text/html' } }),
    502,
    'UpstreamFailure',
    'Upstream Failure',
  ],
  [
    'a page with a status of its own',
    () => new Response('<h1>teapot</h1>', { status: 418, headers: { 'content-type': 'text/html' } }),
    418,
    'InvalidRequest',
    'Invalid Request',
  ],
  [
    'JSON that is none',
    () => new Response('{"error":', { status: 503, headers: { 'content-type': 'application/json' } }),
    503,
    'NotEnoughResources',
    'Not Enough Resources',
  ],
  [
    'a coded error',
    () =>
      new Response(gzipSync('{"error":"Coded","message":"m"}'), {
        status: 400,
        headers: { 'content-type': 'application/json', 'content-encoding': 'gzip' },
      }),
    400,
    'Coded',
    'm',
  ],
  [
    'an error too long to read',
    () => Response.json({ error: 'Long', message: 'x'.repeat(200_000) }, { status: 400 }),
    400,
    'InvalidRequest',
    'Invalid Request',
  ],
]
test.each(failures)('%s', async (_, answerer, status, error, message) => {
  appview.answer('app.bsky.test.fails', answerer)
  const answer = await xrpc('app.bsky.test.fails')
  expect(answer).toMatchObject({ status, body: { error, message } })
  expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8')
})

test('an error keeps the few headers that say when and about what', async () => {
  appview.answer('app.bsky.test.later', () =>
    Response.json(
      { error: 'Later', message: 'm' },
      {
        status: 429,
        headers: {
          'retry-after': '7',
          'atproto-repo-rev': '3abc',
          'www-authenticate': 'DPoP error="x"',
          'content-language': 'de',
        },
      },
    ),
  )
  const { headers } = await xrpc('app.bsky.test.later')
  expect([headers.get('retry-after'), headers.get('atproto-repo-rev')]).toEqual(['7', '3abc'])
  expect([headers.has('www-authenticate'), headers.has('content-language')]).toEqual([false, false])
})

test('a service that cannot be reached is a bad gateway', async () => {
  const gone = startUpstream()
  gone.services['test_service'] = gone.url
  await xrpc('com.example.once', targeting(`${gone.did}#test_service`))
  await gone[Symbol.asyncDispose]()
  expect(await xrpc('com.example.twice', targeting(`${gone.did}#test_service`))).toMatchObject({
    status: 502,
    body: { error: 'UpstreamFailure', message: 'Upstream service unreachable' },
  })
})

test('an answer that breaks off does not look complete', async () => {
  await using broken = startRawUpstream(
    'HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: 100\r\n\r\nonly this',
  )
  await using named = startUpstream()
  named.services['test_service'] = broken.url
  const headers = { ...full, ...targeting(`${named.did}#test_service`).headers }
  const reading = fetch(`${pds.url}/xrpc/com.example.anything`, { headers }).then(async (response) => ({
    status: response.status,
    text: await response.text(),
  }))
  // Whether headers had gone out by then is a matter of timing.
  const outcome = await reading.catch(() => 'broken off' as const)
  if (outcome !== 'broken off') expect(outcome.status).toBe(502)
})

test('what is no HTTP is a bad gateway', async () => {
  await using broken = startRawUpstream('hello\r\n')
  await using named = startUpstream()
  named.services['test_service'] = broken.url
  expect(await xrpc('com.example.anything', targeting(`${named.did}#test_service`))).toMatchObject({
    status: 502,
    body: { error: 'UpstreamFailure' },
  })
})

test('an answer of more than 10 MiB is refused', async () => {
  appview.answer('app.bsky.test.huge', () => new Response(new Uint8Array(10 * 1024 ** 2 + 1)))
  expect((await xrpc('app.bsky.test.huge')).status).toBe(502)
})

test('requests are counted by upstream and outcome', async () => {
  using _ = atOneNode(pds, 'each node counts for itself')
  appview.answer('app.bsky.test.counted', () => Response.json({}, { headers: { 'atproto-upstream-lag': '1500' } }))
  const counts = async () => {
    const { body } = await request(`${pds.url}/metrics`)
    const value = (line: string) => Number(new RegExp(`^${line} (\\S+)$`, 'm').exec(body as string)?.[1])
    return {
      appview: value('proxy_requests_total\\{upstream="appview",status_class="2xx"\\}'),
      unreachable: value('proxy_requests_total\\{upstream="header_target",status_class="5xx"\\}'),
      lags: value('proxy_upstream_lag_seconds_sum'),
    }
  }
  const before = await counts()
  await xrpc('app.bsky.test.counted')
  await xrpc('com.example.anything', targeting(`${other.did}#test_private`))
  expect(await counts()).toEqual({
    appview: before.appview + 1,
    unreachable: before.unreachable + 1,
    lags: before.lags + 1.5,
  })
})

test('the lag that an AppView tells is a number of milliseconds, or is not counted', async () => {
  using _ = atOneNode(pds, 'each node counts for itself')
  const sum = async () =>
    /^proxy_upstream_lag_seconds_sum (\S+)$/m.exec((await request(`${pds.url}/metrics`)).body as string)![1]
  const before = await sum()
  for (const lag of ['Infinity', '1e300', '0x10', '-1', '', 'soon']) {
    appview.answer('app.bsky.test.lagging', () => Response.json({}, { headers: { 'atproto-upstream-lag': lag } }))
    expect((await xrpc('app.bsky.test.lagging')).status).toBe(200)
  }
  expect(await sum()).toBe(before!)
})

// What is refused

test.each([
  ['#bsky_chat', 'no did specified in proxy header'],
  ['did:web:chat.test', 'no service id specified in proxy header'],
  ['did:web:chat.test#', 'no service id specified in proxy header'],
  ['did:web:chat.test#a#b', 'invalid proxy header format'],
  ['did:web:chat.test#a b', 'proxy header cannot contain spaces'],
  ['chat.test#bsky_chat', 'could not resolve proxy did'],
  ['did:web:nowhere.test#bsky_chat', 'could not resolve proxy did'],
  ['did:example:abc#bsky_chat', 'could not resolve proxy did'],
])('atproto-proxy: %s is refused', async (header, message) => {
  expect(await xrpc('com.example.anything', targeting(header))).toMatchObject({
    status: 400,
    body: { error: 'InvalidRequest', message },
  })
  expect(asked()).toBe(0)
})

test('a service that its document does not list is refused', async () => {
  expect(await xrpc('com.example.anything', targeting(`${other.did}#absent`))).toMatchObject({
    status: 400,
    body: { message: 'could not resolve proxy did service url' },
  })
})

test.each(['test_private', 'test_intranet'])('a target inside our own network is not reached: %s', async (fragment) => {
  expect(await xrpc('com.example.anything', targeting(`${other.did}#${fragment}`))).toMatchObject({
    status: 502,
    body: { error: 'UpstreamFailure' },
  })
})

test('nobody asks another service without saying who asks', async () => {
  const anonymous = (nsid: string, headers: Record<string, string> = {}) =>
    request(`${pds.url}/xrpc/${nsid}`, { headers })
  expect(await anonymous('app.bsky.graph.getFollows?actor=a')).toMatchObject({
    status: 401,
    body: { error: 'AuthMissing', message: 'Authentication Required' },
  })
  expect(await anonymous('com.example.anything')).toMatchObject({ status: 401, body: { error: 'AuthMissing' } })
  expect(await anonymous('com.example.anything', { 'atproto-proxy': 'did:web:nowhere.test#x' })).toMatchObject({
    status: 401,
    body: { error: 'AuthMissing' },
  })
  expect(await anonymous('com.example.anything', { 'atproto-proxy': '#x' })).toMatchObject({ status: 400 })
  expect(await anonymous('com.atproto.sync.subscribeRepos')).toMatchObject({
    status: 401,
    body: { error: 'AuthMissing' },
  })
  expect(asked()).toBe(0)
})

test.each([
  'com.atproto.server.getsession',
  'COM.atproto.server.CREATEAPPPASSWORD',
  'com.atproto.identity.SignPlcOperation',
])('%s is nobody else’s business, however it is written', async (nsid) => {
  expect(await xrpc(nsid, targeting(`${other.did}#test_service`))).toMatchObject({
    status: 400,
    body: { error: 'InvalidToken', message: 'Bad token method' },
  })
  expect(asked()).toBe(0)
})

const reach: [SessionKind, string, number][] = [
  ['full', 'chat.bsky.convo.getLog', 200],
  ['privileged', 'chat.bsky.convo.getLog', 200],
  ['app', 'chat.bsky.convo.getLog', 400],
  ['app', 'chat.bsky.some.newMethod', 400],
  ['app', 'Chat.bsky.convo.getLog', 400],
  ['app', 'app.bsky.graph.getFollows', 200],
  ['takendown', 'app.bsky.graph.getFollows', 400],
]
test.each(reach)('a session of kind %s calling %s: %i', async (kind, nsid, status) => {
  const answer = await request(`${pds.url}/xrpc/${nsid}`, {
    headers: { ...(await alice.as(kind)), ...targeting('did:web:chat.test#bsky_chat').headers },
  })
  expect(answer.status).toBe(status)
  if (status === 400) expect(answer.body.error).toBe('InvalidToken')
})

test('what is no method is not forwarded', async () => {
  expect(await xrpc('not-an-nsid')).toMatchObject({
    status: 400,
    body: { error: 'InvalidRequest', message: 'invalid xrpc path' },
  })
  expect(await xrpc('app.bsky.graph.getFollows/extra')).toMatchObject({
    status: 400,
    body: { message: 'invalid xrpc path' },
  })
  expect(await xrpc('app.bsky.graph.getFollows', { method: 'DELETE' })).toMatchObject({
    status: 400,
    body: { message: 'XRPC requests only supports GET and POST' },
  })
  expect(asked()).toBe(0)
})

test('a half-sent body ends when the client leaves', async () => {
  const bytes = `POST /xrpc/app.bsky.test.echo HTTP/1.1\r\nHost: ${new URL(pds.url).host}\r\nAuthorization: ${full.authorization}\r\nContent-Type: text/plain\r\nContent-Length: 1000\r\n\r\nhalf`
  const { hostname, port } = new URL(pds.url)
  const client = connect(Number(port), hostname)
  client.write(bytes)
  await until(() => appview.received.length === 1)
  client.destroy()
  expect(await Promise.all(appview.received.map(({ aborted }) => aborted))).toHaveLength(1)
})
