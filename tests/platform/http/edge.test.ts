/** The edge's promises to any client, and the traps of the runtime below it. */
import { expect, test } from 'bun:test'
import { VERSION } from '../../../src/base/version.ts'
import { listen } from '../../../src/http/listener.ts'
import { request, raw } from '../../support/clients/http.ts'
import { startPds } from '../../support/servers/pds.ts'
import { useWorld } from '../../support/world.ts'
import { thrownBy } from '../../support/thrown.ts'

const { pds } = useWorld()

const xrpc = (path: string, init?: Parameters<typeof request>[1]) => request(`${pds.url}/xrpc/${path}`, init)

test('health names the software and says that the database answers', async () => {
  const { status, body } = await xrpc('_health')
  expect(status).toBe(200)
  expect(body).toEqual({ version: `holdfast v${VERSION}`, db: 'ok' })
})

test('describeServer carries the extension under both names', async () => {
  const { body } = await xrpc('com.atproto.server.describeServer')
  expect(body).toMatchObject({
    did: pds.ctx.config.serverDid,
    availableUserDomains: ['.test'],
    inviteCodeRequired: false,
  })
  expect(body.extension).toEqual(body.custos)
  expect(body.extension.capabilities).toContain('appPasswordPersonalDetails')
  expect(body.extension.capabilities).not.toContain('waitlist')
})

test('methods, paths and verbs are told apart by name', async () => {
  expect(await xrpc('com.atproto.server.describeServer/')).toMatchObject({ status: 200 })
  expect(await xrpc('com.atproto.server.describeServer', { method: 'POST' })).toMatchObject({
    status: 400,
    body: { error: 'InvalidRequest', message: 'Incorrect HTTP method (POST) expected GET' },
  })
  expect(await xrpc('com.atproto.server.describeServer', { method: 'PUT' })).toMatchObject({
    status: 400,
    body: { message: 'XRPC requests only supports GET and POST' },
  })
  expect(await xrpc('not_an_nsid')).toMatchObject({
    status: 400,
    body: { error: 'InvalidRequest', message: 'invalid xrpc path' },
  })
  expect(await request(`${pds.url}/nowhere`)).toMatchObject({ status: 404 })
})

test('HEAD answers like GET without a body', async () => {
  const { status, body } = await xrpc('com.atproto.server.describeServer', { method: 'HEAD' })
  expect({ status, body }).toEqual({ status: 200, body: '' })
})

test.each(['gzip', 'identity'])('HEAD says of a page how long it is in %s', async (coding) => {
  const lengths = []
  for (const method of ['GET', 'HEAD']) {
    const response = await fetch(`${pds.url}/`, { method, headers: { accept: 'text/html', 'accept-encoding': coding } })
    lengths.push(response.headers.get('content-length'))
  }
  expect(lengths).toEqual([expect.stringMatching(/^\d+$/), lengths[0]])
})

test('a body where none belongs is refused, an empty one is not', async () => {
  const url = `${pds.url}/xrpc/com.atproto.server.describeServer`
  const withBody = await raw(
    url,
    'GET /xrpc/com.atproto.server.describeServer HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}',
  )
  expect(withBody).toContain('A request body was provided when none was expected')
  const empty = await raw(
    url,
    'GET /xrpc/com.atproto.server.describeServer HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 0\r\n\r\n',
  )
  expect(empty).toStartWith('HTTP/1.1 200')
})

test('browsers of other origins may call, and see the headers they need', async () => {
  const preflight = await xrpc('com.atproto.server.createSession', {
    method: 'OPTIONS',
    headers: { origin: 'https://app.example', 'access-control-request-headers': 'authorization,dpop' },
  })
  expect(preflight.status).toBe(204)
  expect(preflight.headers.get('access-control-allow-origin')).toBe('*')
  expect(preflight.headers.get('access-control-allow-headers')).toBe('authorization,dpop')
  expect(preflight.headers.get('access-control-max-age')).toBe('86400')
  const { headers } = await xrpc('com.atproto.server.describeServer')
  expect(headers.get('access-control-allow-credentials')).toBeNull()
  for (const name of ['DPoP-Nonce', 'WWW-Authenticate', 'RateLimit-Limit', 'Atproto-Repo-Rev'])
    expect(headers.get('access-control-expose-headers')).toContain(name)
})

test('limits are told in headers, in epoch seconds', async () => {
  const { headers } = await xrpc('com.atproto.server.describeServer')
  expect(headers.get('ratelimit-limit')).toBe('3000')
  expect(headers.get('ratelimit-policy')).toBe('3000;w=300')
  expect(Number(headers.get('ratelimit-reset'))).toBeGreaterThan(1_700_000_000)
})

test('a host that is a handle serves nothing but its well-known documents', async () => {
  const get = (path: string) => raw(pds.url, `GET ${path} HTTP/1.1\r\nHost: alice.test\r\nConnection: close\r\n\r\n`)
  expect(await get('/xrpc/com.atproto.server.describeServer')).toStartWith('HTTP/1.1 404')
  expect(await get('/')).toStartWith('HTTP/1.1 404')
})

test('the landing page escapes what it shows and allows no scripts', async () => {
  const { status, headers, body } = await request(`${pds.url}/`)
  expect(status).toBe(200)
  expect(headers.get('content-security-policy')).toContain("default-src 'none'")
  expect(body).toContain(pds.ctx.config.serverDid)
})

test('a stop lets a running request finish and refuses new ones', async () => {
  const arrived = Promise.withResolvers<void>()
  await using other = await startPds(
    {},
    {
      listen: (config, dispatcher) =>
        listen(config, {
          ...dispatcher,
          dispatch(request, peer) {
            arrived.resolve()
            return dispatcher.dispatch(request, peer)
          },
        }),
    },
  )
  const { port } = new URL(other.url)
  const answers: string[] = []
  const socket = await Bun.connect({
    hostname: 'localhost',
    port: Number(port),
    socket: { data: (_, chunk) => void answers.push(chunk.toString()) },
  })
  socket.write(
    'POST /xrpc/com.atproto.server.describeServer HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nContent-Type: application/json\r\n\r\n{',
  )
  await arrived.promise
  const stopped = other.stop()
  socket.write('}')
  await stopped
  expect(await thrownBy(fetch(`${other.url}/xrpc/_health`))).toThrow()
})
