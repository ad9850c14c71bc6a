/**
 * Input that was made to hurt: it is refused at little cost, and comes back in no header and no page as more than text.
 */
import { describe, expect, test } from 'bun:test'
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import { createAccount } from '../../support/clients/account.ts'
import { bearer, raw, request } from '../../support/clients/http.ts'
import { ADMIN_TOKEN, startPds } from '../../support/servers/pds.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'

const { pds } = useWorld({ config: { rateLimit: { enabled: false }, waitlist: { enabled: true } } })
const alice = setUp(() => createAccount(pds, 'alice'))

const post = (path: string, body: string | Uint8Array, headers: Record<string, string> = {}) =>
  request(`${pds.url}${path}`, {
    method: 'POST',
    body: body as string,
    headers: { 'content-type': 'application/json', ...headers },
  })

describe('a body that grows when it is unpacked', () => {
  const zeros = Buffer.alloc(32 * 1024 ** 2, ' ')
  const bombs = {
    gzip: gzipSync(zeros),
    deflate: deflateSync(zeros),
    br: brotliCompressSync(zeros),
    'gzip, gzip': gzipSync(gzipSync(zeros)),
  }

  test.each(Object.keys(bombs) as (keyof typeof bombs)[])('by %s is refused everywhere', async (coding) => {
    for (const [path, contentType] of [
      ['/xrpc/com.atproto.server.createSession', 'application/json'],
      ['/waitlist', 'application/json'],
      ['/account/sign-in', 'application/x-www-form-urlencoded'],
      ['/oauth/token', 'application/x-www-form-urlencoded'],
      ['/oauth/par', 'application/json'],
      ['/did:plc:aaaaaaaaaaaaaaaaaaaaaaaa', 'application/json'],
    ] as const)
      expect([
        path,
        (await post(path, bombs[coding], { 'content-encoding': coding, 'content-type': contentType })).status,
      ]).toEqual([path, 413])
  })

  test('is not unpacked more than twice', async () => {
    const packed = (times: number) =>
      Array.from({ length: times }).reduce<Uint8Array>(
        (bytes) => gzipSync(bytes),
        Buffer.from('{"identifier":"a","password":"b"}'),
      )
    const logIn = (times: number) =>
      post('/xrpc/com.atproto.server.createSession', packed(times), {
        'content-encoding': Array(times).fill('gzip').join(', '),
      })
    expect((await logIn(2)).status).toBe(401)
    expect(await logIn(3)).toMatchObject({ status: 415, body: { error: 'UnsupportedMediaType' } })
    expect(
      (
        await post('/xrpc/com.atproto.server.createSession', '{}', {
          'content-encoding': Array(1500).fill('br').join(','),
        })
      ).status,
    ).toBe(415)
  })
})

test('nothing is so deep that the server falls in', async () => {
  const deep = (levels: number) => '['.repeat(levels) + ']'.repeat(levels)
  const bodies: [string, (value: string) => string][] = [
    ['com.atproto.server.createSession', (value) => `{"identifier":${value},"password":"b"}`],
    [
      'com.atproto.repo.createRecord',
      (value) => `{"repo":"${alice.did}","collection":"org.example.note","record":{"a":${value}}}`,
    ],
    [
      'app.bsky.actor.putPreferences',
      (value) => `{"preferences":[{"$type":"app.bsky.actor.defs#example","a":${value}}]}`,
    ],
    ['com.atproto.identity.submitPlcOperation', (value) => `{"operation":{"a":${value}}}`],
  ]
  for (const [nsid, body] of bodies)
    for (const levels of [255, 5000, 70_000]) {
      const { status } = await post(`/xrpc/${nsid}`, body(deep(levels)), bearer(alice.accessJwt))
      expect([nsid, levels, status]).toEqual([nsid, levels, 400])
    }
  expect((await post('/waitlist', `{"email":${deep(2000)}}`)).status).toBe(400)
})

/** A pattern that backtracks, or a look-up of each label with all that follow it, would take longer than a test may. */
test('long names cost little', async () => {
  const long = [
    'a@' + 'a.'.repeat(30_000),
    'a'.repeat(60_000),
    `did:web:${'%25'.repeat(20_000)}`,
    'a.'.repeat(30_000),
    '@'.repeat(60_000),
    ' '.repeat(60_000),
  ]
  for (const name of long) {
    expect(
      (
        await post(
          '/xrpc/com.atproto.server.createAccount',
          JSON.stringify({ handle: name, email: name, password: 'a password' }),
        )
      ).status,
    ).toBe(400)
    expect(
      (await post('/xrpc/com.atproto.server.requestPasswordReset', JSON.stringify({ email: name }))).status,
    ).toBeLessThan(500)
    expect((await alice.call('com.atproto.server.updateEmail', { json: { email: name } })).status).toBe(400)
    expect(
      (
        await request(
          `${pds.url}/xrpc/com.atproto.identity.resolveHandle?handle=${encodeURIComponent(name.slice(0, 5000))}`,
        )
      ).status,
    ).toBe(400)
  }
})

test('no path leads out of the folders', async () => {
  const up = [
    '../master.key',
    '..%2fmaster.key',
    '%2e%2e/master.key',
    '..\\master.key',
    '/etc/passwd',
    '%2fetc%2fpasswd',
    '%00',
    '%zz',
    '%',
  ]
  for (const path of up) {
    for (const place of [
      `/xrpc/com.atproto.sync.getBlob?did=${alice.did}&cid=`,
      '/assets/',
      '/.well-known/',
      '/',
      '/xrpc/',
      '/v1/accounts/',
      '/v1/admin/sweeps/',
    ]) {
      const answer = await raw(
        pds.url,
        `GET ${place}${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${ADMIN_TOKEN}\r\nConnection: close\r\n\r\n`,
      )
      expect([place, path, answer.slice(9, 10)]).toEqual([place, path, '4'])
    }
  }
})

describe('what a stranger sends', () => {
  const evil = '"><script>alert(1)</script>\'<img src=x onerror=alert(1)>'
  const query = encodeURIComponent(evil)

  test('is text on every page', async () => {
    const pages = [
      `/?${query}`,
      `/account/sign-in?identifier=${query}&done=${query}`,
      '/account/sign-in?done=constructor',
      `/account/sign-up?handle=${query}&email=${query}&domain=${query}&invite_code=${query}&request_uri=${query}&client_id=${query}`,
      `/account/reset-password/code?code=${query}&sent=${query}`,
      `/account?account=${query}&done=__proto__`,
      `/oauth/authorize?request_uri=${query}&client_id=${query}`,
    ]
    for (const path of pages) {
      const { body, headers } = await request(`${pds.url}${path}`)
      for (const trace of ['<script', 'onerror=alert(1)>', '[native code]', '[object'])
        expect([path, String(body).includes(trace) && !String(body).includes(`&gt;&lt;script`)]).toEqual([path, false])
      expect(String(body)).not.toContain('<script>alert')
      if (headers.get('content-type')?.startsWith('text/html'))
        expect(headers.get('content-security-policy')).toContain("default-src 'none'")
    }
    for (const path of ['/account/sign-in', '/account/sign-up', '/account/reset-password/code']) {
      const fields = new URLSearchParams({
        identifier: evil,
        password: 'wrong',
        handle: evil,
        name: evil,
        email: evil,
        domain: evil,
        code: evil,
        request_uri: evil,
        client_id: evil,
      })
      const { body } = await post(path, fields.toString(), { 'content-type': 'application/x-www-form-urlencoded' })
      expect(body).not.toContain('<script>alert')
      expect(body).not.toContain('<img src=x')
    }
  })

  test('is never sent back as a page, whatever it calls itself', async () => {
    for (const type of [
      'text/html',
      'image/svg+xml',
      'text/javascript',
      'text/html"',
      'text/html, application/pdf',
      'a/\tb',
    ]) {
      const uploaded = await alice.call('com.atproto.repo.uploadBlob', {
        method: 'POST',
        body: `<script>alert(1)</script>${type}`,
        headers: { 'content-type': type },
      })
      expect(uploaded.status).toBe(200)
      const { headers } = await alice.call(
        `com.atproto.sync.getBlob?did=${alice.did}&cid=${uploaded.body.blob.ref.$link}`,
      )
      expect(Object.fromEntries(headers)).toMatchObject({
        'x-content-type-options': 'nosniff',
        'content-security-policy': "default-src 'none'; sandbox",
        'content-disposition': expect.stringMatching(/^attachment; filename="[a-z0-9]+"$/),
      })
    }
    for (const path of [
      `/${query}`,
      `/xrpc/${query}`,
      `/tls-check?domain=${query}`,
      `/v1/${query}`,
      `/oauth/${query}`,
    ]) {
      const { headers } = await request(`${pds.url}${path}`)
      expect([path, headers.get('content-type')?.startsWith('text/html')]).toEqual([path, false])
    }
  })

  test('is taken for what its type says, wherever it comes back', async () => {
    const repo = `did=${alice.did}`
    const paths = [
      `/${query}`,
      `/xrpc/${query}`,
      `/xrpc/com.atproto.repo.getRecord?repo=${alice.did}&collection=${query}&rkey=x`,
      `/xrpc/com.atproto.repo.describeRepo?repo=${alice.did}`,
      `/xrpc/com.atproto.sync.getRepo?${repo}`,
      `/xrpc/com.atproto.sync.getBlob?${repo}&cid=${query}`,
      `/v1/${query}`,
      `/oauth/${query}`,
      `/oauth/authorize?client_id=${query}`,
      `/account/sign-in?${query}`,
      `/agent/claim?${query}`,
      '/.well-known/did.json',
      '/.well-known/atproto-did',
      `/tls-check?domain=${query}`,
      '/robots.txt',
      '/',
    ]
    for (const path of paths) {
      const { headers } = await request(`${pds.url}${path}`)
      expect([path, headers.get('x-content-type-options')]).toEqual([path, 'nosniff'])
    }
  })

  test('adds no header to an answer and none to a mail', async () => {
    for (const email of [
      'a@example.com\r\nBcc: all@example.com',
      'a@example.com\nBcc: b@example.com',
      'a@example.com, b@example.com',
      '<a@example.com>',
      'a@example.com\0',
    ])
      expect(
        await post(
          '/xrpc/com.atproto.server.createAccount',
          JSON.stringify({ handle: 'mallory.test', email, password: 'a password' }),
        ),
      ).toMatchObject({ status: 400 })
    for (const handle of ['x\r\nset-cookie:a=b.test', 'x\n.test', 'x%0d%0a.test'])
      expect(
        await post(
          '/xrpc/com.atproto.server.createAccount',
          JSON.stringify({ handle, email: 'm@example.com', password: 'a password' }),
        ),
      ).toMatchObject({ status: 400 })
    const { headers } = await request(`${pds.url}/account/sign-in?done=%0d%0aset-cookie:a=b`)
    expect(headers.get('set-cookie')).not.toContain('a=b')
  })
})

test('nobody is sent to addresses that are not public, whichever way they are given', async () => {
  let reached = 0
  using inside = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => (reached++, Response.json({})) })
  await using pds = await startPds({ development: false, rateLimit: { enabled: false } })
  pds.dns.setAddresses('rebound.example', '127.0.0.1')
  const hosts = [
    `127.0.0.1:${inside.port}`,
    `localhost:${inside.port}`,
    `rebound.example:${inside.port}`,
    `2130706433:${inside.port}`,
    `0x7f.1:${inside.port}`,
    `[::ffff:127.0.0.1]:${inside.port}`,
    '10.0.0.1',
    '169.254.169.254',
  ]
  for (const scheme of ['https', 'http', 'file', 'gopher']) {
    for (const host of hosts) {
      const client_id = `${scheme}://${host}/client.json`
      const pushed = await request(`${pds.url}/oauth/par`, { json: { client_id, response_type: 'code' } })
      expect([client_id, pushed.status, pushed.body.error]).toEqual([client_id, 400, 'invalid_client'])
    }
  }
  for (const host of hosts) {
    const did = `did:web:${encodeURIComponent(host)}`
    for (const nsid of [
      `com.atproto.identity.resolveDid?did=${encodeURIComponent(did)}`,
      `com.atproto.identity.resolveHandle?handle=${encodeURIComponent(host)}`,
    ]) {
      const { status } = await request(`${pds.url}/xrpc/${nsid}`)
      expect([nsid, status >= 400]).toEqual([nsid, true])
    }
  }
  expect(reached).toBe(0)
})
