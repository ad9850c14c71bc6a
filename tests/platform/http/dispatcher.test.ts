/** The dispatcher called by itself: no port, no socket, no HTTP library. */
import { expect, test } from 'bun:test'
import { connect } from 'node:net'
import type { Dispatcher } from '../../../src/http/dispatcher.ts'
import type { SocketHandler } from '../../../src/http/endpoint.ts'
import type { Peer } from '../../../src/http/peer.ts'
import { PASSWORD } from '../../support/clients/account.ts'
import { ADMIN_TOKEN, startPds } from '../../support/servers/pds.ts'
import { useWorld } from '../../support/world.ts'

let dispatcher: Dispatcher
/** Event streams that the peer took over. */
const taken: SocketHandler[] = []

const { pds } = useWorld({
  config: { rateLimit: { createSessionPer5min: 2 }, firehose: { maxSubscribers: 1 } },
  options: {
    listen(_, given) {
      dispatcher = given
      return { url: 'nowhere', port: 0, stop: given.stop }
    },
  },
})

const peerAt = (address: string, upgrades = false): Peer => ({
  addressOf: () => address,
  mayIdle() {},
  upgrade: (_, handler) => upgrades && taken.push(handler) > 0,
})

const send = (path: string, init: RequestInit & { host?: string } = {}, peer = peerAt('192.0.2.1')) =>
  dispatcher.dispatch(
    new Request(pds.url + path, {
      ...init,
      headers: { host: init.host ?? 'localhost', ...(init.headers as Record<string, string>) },
    }),
    peer,
  )

function post(nsid: string, input: object, headers: Record<string, string> = {}, peer?: Peer): Promise<Response> {
  const body = JSON.stringify(input)
  return send(
    `/xrpc/${nsid}`,
    {
      method: 'POST',
      body,
      headers: { 'content-type': 'application/json', 'content-length': String(body.length), ...headers },
    },
    peer,
  )
}

test('a server whose listener is replaced listens nowhere', async () => {
  const { port } = new URL(pds.url)
  const refused = Promise.withResolvers<Error>()
  connect(Number(port), '127.0.0.1').on('error', refused.resolve)
  expect(await refused.promise).toMatchObject({ code: 'ECONNREFUSED' })
})

test('a query is answered', async () => {
  const answer = await send('/xrpc/com.atproto.server.describeServer')
  expect(answer.status).toBe(200)
  expect(await answer.json()).toMatchObject({ did: pds.ctx.config.serverDid })
})

test('procedures do their work, from an account to a record', async () => {
  const made = await post('com.atproto.server.createAccount', {
    handle: 'alice.test',
    email: 'alice@example.com',
    password: PASSWORD,
  })
  const { did, accessJwt } = (await made.json()) as { did: string; accessJwt: string }
  const input = { repo: did, collection: 'com.example.note', record: { $type: 'com.example.note' } }
  expect((await post('com.atproto.repo.createRecord', input)).status).toBe(401)
  const written = await post('com.atproto.repo.createRecord', input, { authorization: `Bearer ${accessJwt}` })
  expect(written.status).toBe(200)
  expect(await written.json()).toMatchObject({ uri: expect.stringContaining(did) })
})

test('a page is a page', async () => {
  const answer = await send('/account/sign-in', { headers: { accept: 'text/html' } })
  expect(answer.status).toBe(200)
  expect(await answer.text()).toStartWith('<!doctype html>')
})

test('a path with values hands them to its handler', async () => {
  const answer = await send('/v1/accounts/did%3Aweb%3Anobody.example/usage', {
    headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
  })
  expect(answer.status).toBe(404)
  expect(await answer.json()).toMatchObject({ error: { message: 'No such account' } })
})

test('a path that leads nowhere is not found, below a host of a handle no other is', async () => {
  expect((await send('/nowhere')).status).toBe(404)
  expect((await send('/xrpc/com.atproto.server.describeServer', { host: 'alice.test' })).status).toBe(404)
  expect((await send('/.well-known/atproto-did', { host: 'alice.test' })).status).toBe(200)
})

test('a Host that is none is refused', async () => {
  const answer = await send('/xrpc/com.atproto.server.describeServer', { host: 'a, b' })
  expect({ status: answer.status, text: await answer.text() }).toEqual({
    status: 400,
    text: 'The Host header is missing or names no host\n',
  })
})

test('limits go by the address that the peer tells', async () => {
  const logIn = (address: string) =>
    post(
      'com.atproto.server.createSession',
      { identifier: 'nobody.test', password: 'wrong' },
      {},
      peerAt(address),
    ).then(({ status }) => status)
  expect([
    await logIn('192.0.2.7'),
    await logIn('192.0.2.7'),
    await logIn('192.0.2.7'),
    await logIn('192.0.2.8'),
  ]).toEqual([401, 401, 429, 401])
})

test('a subscription is refused before the upgrade, or handed to the peer', async () => {
  const subscribe = (upgrades: boolean) =>
    send('/xrpc/com.atproto.sync.subscribeRepos', { headers: { upgrade: 'websocket' } }, peerAt('192.0.2.1', upgrades))
  const unable = await subscribe(false)
  expect({ status: unable.status, ...((await unable.json()) as object) }).toMatchObject({
    status: 400,
    message: 'Expected a WebSocket upgrade',
  })

  // What could not be upgraded has given its place back.
  expect((await subscribe(true)).status).toBe(200)
  expect(taken).toHaveLength(1)
  expect((await subscribe(true)).status).toBe(503)
  expect(taken).toHaveLength(1)
  for (const handler of taken) handler.closed()
  expect((await subscribe(true)).status).toBe(200)
})

test('a connection may be idle while something long is under way, and no longer', async () => {
  const made = await post('com.atproto.server.createAccount', {
    handle: 'carol.test',
    email: 'carol@example.com',
    password: PASSWORD,
  })
  const { did, accessJwt } = (await made.json()) as { did: string; accessJwt: string }
  const told: boolean[] = []
  const peer: Peer = { ...peerAt('192.0.2.10'), mayIdle: (_, may) => void told.push(may) }
  const headers = { authorization: `Bearer ${accessJwt}` }
  expect((await send('/account/archive/import', { method: 'POST', body: 'x' }, peer)).status).toBe(303)
  expect((await send('/xrpc/com.atproto.repo.importRepo', { method: 'POST', body: 'x' }, peer)).status).toBe(401)
  expect((await send(`/xrpc/com.atproto.sync.getRepo?did=${did}`, {}, peer)).status).toBe(200)
  expect(told).toEqual([true, false, true, false, true, false])

  const reader = (await send('/v1/account/archive', { headers }, peer)).body!.getReader()
  await reader.read()
  expect(told.at(-1)).toBe(true)
  while (!(await reader.read()).done);
  expect(told.at(-1)).toBe(false)

  const body = JSON.stringify({ repo: did, collection: 'com.example.note', record: { text: 'x'.repeat(100_000) } })
  const type = { 'content-type': 'application/json', 'content-length': String(body.length) }
  for (let n = 0; n < 4; n++)
    await send('/xrpc/com.atproto.repo.createRecord', { method: 'POST', body, headers: { ...headers, ...type } })
  const car = (await send(`/xrpc/com.atproto.sync.getRepo?did=${did}`, {}, peer)).body!.getReader()
  await car.read()
  expect(told.at(-1)).toBe(true)
  await car.cancel()
  expect(told.at(-1)).toBe(false)
})

test('once it is told to stop it takes nothing more', async () => {
  await using other = await startPds(
    {},
    { listen: (_, given) => ((dispatcher = given), { url: 'nowhere', port: 0, stop: given.stop }) },
  )
  expect((await send('/xrpc/_health')).status).toBe(200)
  await other.stop()
  expect((await send('/xrpc/_health')).status).toBe(503)
})
