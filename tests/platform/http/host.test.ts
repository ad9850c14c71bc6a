/** Which host a request is for, as raw bytes: a bad one reaches no handler, whatever is asked for. */
import { expect, test } from 'bun:test'
import { createAccount } from '../../support/clients/account.ts'
import { raw } from '../../support/clients/http.ts'
import { ADMIN_TOKEN } from '../../support/servers/pds.ts'
import { useWorld } from '../../support/world.ts'

const { pds } = useWorld()

const send = (requestLine: string, host: string, headers = '', body = '') =>
  raw(
    pds.url,
    Buffer.from(
      `${requestLine} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\nContent-Length: ${body.length}\r\n${headers}\r\n${body}`,
      'latin1',
    ),
  )

/** By us, or by the runtime, which says nothing. */
const REFUSED = /^HTTP\/1\.1 400 [^]*\r\n\r\n(The Host header is missing or names no host\n)?$/

const signUp = JSON.stringify({ handle: 'mallory.test', email: 'mallory@example.com', password: 'a long password' })
/** One path for each way a request takes through the edge. */
const requests: { line: string; headers?: string; body?: string }[] = [
  { line: 'POST /xrpc/com.atproto.server.createAccount', headers: 'Content-Type: application/json\r\n', body: signUp },
  {
    line: 'POST /xrpc/zzzzzcom.atproto.server.createAccount',
    headers: 'Content-Type: application/json\r\n',
    body: signUp,
  },
  {
    line: 'POST /zzzzz/xrpc/com.atproto.server.createAccount',
    headers: 'Content-Type: application/json\r\n',
    body: signUp,
  },
  { line: 'GET /xrpc/app.bsky.actor.getProfile?actor=a.test' },
  {
    line: 'GET /xrpc/com.atproto.sync.subscribeRepos',
    headers: 'Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n',
  },
  { line: 'OPTIONS /xrpc/com.atproto.server.createAccount', headers: 'Access-Control-Request-Method: POST\r\n' },
  { line: 'GET /' },
  { line: 'GET /account/sign-in', headers: 'Accept: text/html\r\n' },
  {
    line: 'POST /account/sign-up',
    headers: 'Content-Type: application/x-www-form-urlencoded\r\n',
    body: 'name=mallory',
  },
  { line: 'GET /v1/accounts/did:web:a.test/usage', headers: `Authorization: Bearer ${ADMIN_TOKEN}\r\n` },
  { line: 'GET /.well-known/atproto-did' },
  { line: 'GET /nowhere' },
]

/** Numbers below `bound`, the same in every run. */
function numbers(seed: number): (bound: number) => number {
  let state = seed
  return (bound) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * bound)
  }
}

/** Hosts with a character that no host has, at any place, before, within or behind what else would move the path. */
function hostileHosts(count: number): string[] {
  const next = numbers(20_260_101)
  const pick = <T>(from: readonly T[]) => from[next(from.length)]!
  const characters = [
    '#',
    '?',
    '@',
    '/',
    '\\',
    '<',
    '>',
    ' ',
    '"',
    '^',
    '|',
    '{',
    '}',
    '%',
    ',',
    ';',
    '[',
    ']',
    '\u00fc',
    '\u007f',
    ':x',
  ]
  const pieces = ['a', 'bcd', 'localhost', 'alice.test', '.', ':80', '/xrpc/', 'zzzzz', '//', '[::1]', '%2f']
  return Array.from({ length: count }, () => {
    const parts = Array.from({ length: 1 + next(3) }, () => pick(pieces))
    return `x${parts.toSpliced(next(parts.length + 1), 0, pick(characters)).join('')}x`
  })
}

test.each(requests)('$line is refused for every Host that is none', async ({ line, headers, body }) => {
  const hosts = [
    '',
    'a@bcd',
    'a#bcd',
    'a?bcd',
    '[zz]',
    'abcd:99999',
    'abcd:',
    '1.2.3.999',
    'xn--a',
    'localhost, localhost',
    `localhost\r\nHost: localhost`,
    `localhost\r\nhOST: elsewhere`,
    ...hostileHosts(40),
  ]
  const answers = await Promise.all(
    hosts.map(async (host) => ({ host, answer: await send(line, host, headers, body) })),
  )
  for (const { host, answer } of answers)
    expect({ host, answer }).toEqual({ host, answer: expect.stringMatching(REFUSED) })
  expect(await pds.rows('account')).toHaveLength(0)
})

test('a request without a Host is refused, in the old version of HTTP too', async () => {
  expect(await raw(pds.url, 'GET /xrpc/_health HTTP/1.1\r\nConnection: close\r\n\r\n')).toStartWith('HTTP/1.1 400')
  expect(await raw(pds.url, 'GET /xrpc/_health HTTP/1.0\r\n\r\n')).toMatch(REFUSED)
})

test.each(['a', 'pds', 'a.b', 'localhost', 'LOCALHOST:80', '127.0.0.1:3000', '[::1]:3000', 'localhost.'])(
  'the path stays where it is for %s',
  async (host) => {
    expect(await send('GET /xrpc/_health', host)).toContain('"db":"ok"')
    expect(await send('GET /xx/xrpc/_health', host)).toStartWith('HTTP/1.1 404')
    expect(await send('GET /account/sign-in', host)).toStartWith('HTTP/1.1 200')
  },
)

test('a target with an authority of its own is answered by its path; other forms are not found', async () => {
  expect(await send('GET http://elsewhere.example/xrpc/_health', 'localhost')).toContain('"db":"ok"')
  expect(await send('GET http://elsewhere.example/xrpc/_health', 'alice.test')).toStartWith('HTTP/1.1 404')
  // A path that takes other methods says so.
  for (const line of ['CONNECT localhost:443', 'TRACE /'])
    expect(await send(line, 'localhost')).toStartWith('HTTP/1.1 405')
  for (const line of ['GET //xrpc/_health', 'POST /xrpc/../zzzzzcom.atproto.server.createAccount'])
    expect(await send(line, 'localhost')).toStartWith('HTTP/1.1 404')
  for (const line of ['OPTIONS *', 'GET *', 'GET xrpc/_health', 'GET ?/xrpc/_health', 'GET @a/xrpc/_health'])
    expect(await send(line, 'localhost')).toStartWith('HTTP/1.1 400')
})

test('a handle is the same host with a dot behind it, with capitals and with a port', async () => {
  const { did } = await createAccount(pds, 'alice')
  for (const host of ['alice.test', 'alice.test.', 'ALICE.Test.', 'alice.test.:443', 'alice.test:8080']) {
    expect(await send('GET /.well-known/atproto-did', host)).toEndWith(`\r\n\r\n${did}`)
    for (const path of ['/', '/account/sign-in', '/xrpc/com.atproto.server.describeServer'])
      expect(await send(`GET ${path}`, host)).toStartWith('HTTP/1.1 404')
  }
})
