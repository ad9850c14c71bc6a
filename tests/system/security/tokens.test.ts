/** Every kind of secret at every place that takes one: it opens its own, and nothing else. */
import { beforeAll, describe, expect, test } from 'bun:test'
import { createHmac, createPublicKey } from 'node:crypto'
import { createAccount, logIn } from '../../support/clients/account.ts'
import { basic, bearer, request, type Answer } from '../../support/clients/http.ts'
import { newKey, OAuthClient, REDIRECT_URI, signJwt, type Tokens } from '../../support/clients/oauth-client.ts'
import { ADMIN_TOKEN } from '../../support/servers/pds.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'

const kinds = [
  'access',
  'app access',
  'refresh',
  'oauth access',
  'oauth refresh',
  'oauth code',
  'proof',
  'service',
  'admin',
  'mailed code',
  'cookie',
  'form token',
] as const
type Kind = (typeof kinds)[number]

let client: OAuthClient
let granted: Tokens
const secrets = {} as Record<Kind, string>

const { pds } = useWorld({ config: { rateLimit: { enabled: false } } })
const alice = setUp(() => createAccount(pds, 'alice'))
beforeAll(async () => {
  const made = await alice.call('com.atproto.server.createAppPassword', { json: { name: 'app', privileged: true } })
  client = new OAuthClient(pds)
  const person = { identifier: alice.handle, password: alice.password }
  granted = await client.signIn(person)
  const service = await alice.call(
    `com.atproto.server.getServiceAuth?${new URLSearchParams({ aud: pds.ctx.config.serverDid, lxm: 'com.atproto.repo.uploadBlob' })}`,
  )
  await alice.call('com.atproto.server.requestAccountDelete', { method: 'POST' })
  const page = await request(`${pds.url}/account/sign-in`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ identifier: alice.handle, password: alice.password }).toString(),
  })
  const cookie = page.headers.get('set-cookie')!.split(';')[0]!
  const account = await request(`${pds.url}/account`, { headers: { cookie } })
  Object.assign(secrets, {
    access: alice.accessJwt,
    'app access': (await logIn(pds, alice, made.body.password)).accessJwt,
    refresh: alice.refreshJwt,
    'oauth access': granted.access_token,
    'oauth refresh': granted.refresh_token,
    'oauth code': await new OAuthClient(pds).code(person),
    proof: client.lastProof,
    service: service.body.token,
    admin: ADMIN_TOKEN,
    'mailed code': /^[A-Z2-7]{5}-[A-Z2-7]{5}$/m.exec(
      pds.mails.findLast(({ text }) => /^[A-Z2-7]{5}-[A-Z2-7]{5}$/m.test(text))!.text,
    )![0],
    cookie: cookie.slice(cookie.indexOf('=') + 1),
    'form token': /name="form_token" value="([^"]+)"/.exec(account.body)![1],
  } satisfies Record<Kind, unknown>)
  for (const kind of kinds) expect([kind, typeof secrets[kind]]).toEqual([kind, 'string'])
})

const xrpc = (nsid: string, init: Parameters<typeof request>[1]) => request(`${pds.url}/xrpc/${nsid}`, init)
const upload = (headers: Record<string, string>) =>
  xrpc('com.atproto.repo.uploadBlob', {
    method: 'POST',
    body: 'bytes',
    headers: { 'content-type': 'text/plain', ...headers },
  })

/**
 * What opens when the secret is of one of these kinds. Each ends with a status below 400 then, and at 400 or above
 * otherwise.
 */
const places: Record<string, { opens: Kind[]; show(secret: string): Promise<Answer> }> = {
  'a session': {
    opens: ['access', 'app access'],
    show: (secret) => xrpc('com.atproto.server.getSession', { headers: bearer(secret) }),
  },
  'the account itself': {
    opens: ['access'],
    show: (secret) => xrpc('com.atproto.server.listAppPasswords', { headers: bearer(secret) }),
  },
  'a session of an app': {
    opens: ['oauth access'],
    show: (secret) => client.call(secret, 'com.atproto.server.getSession'),
  },
  'a session without proof': {
    opens: [],
    show: (secret) => xrpc('com.atproto.server.getSession', { headers: { authorization: `DPoP ${secret}` } }),
  },
  'an upload': { opens: ['access', 'app access', 'service'], show: (secret) => upload(bearer(secret)) },
  'what operators see': {
    opens: ['admin'],
    show: (secret) => request(`${pds.url}/v1/admin/health`, { headers: bearer(secret) }),
  },
  'what operators do to accounts': {
    opens: ['admin'],
    show: (secret) => xrpc(`com.atproto.admin.getAccountInfo?did=${alice.did}`, { headers: basic('admin', secret) }),
  },
  'the same, as bearer': {
    opens: ['admin'],
    show: (secret) => xrpc(`com.atproto.admin.getAccountInfo?did=${alice.did}`, { headers: bearer(secret) }),
  },
  'what only operators do to accounts': {
    opens: ['admin'],
    show: (secret) =>
      xrpc('com.atproto.admin.updateAccountEmail', {
        json: { account: alice.did, email: alice.email },
        headers: bearer(secret),
      }),
  },
  'what is open to all, and more to operators': {
    opens: ['access', 'app access'],
    show: (secret) => xrpc(`com.atproto.sync.getRepo?did=${alice.did}`, { headers: bearer(secret) }),
  },
  'a browser': {
    opens: ['cookie'],
    async show(secret) {
      const answer = await request(`${pds.url}/account`, { headers: { cookie: `holdfast=${secret}` } })
      return answer.status === 303 ? { ...answer, status: 401 } : answer
    },
  },
  'a login': {
    opens: [],
    show: (secret) =>
      xrpc('com.atproto.server.createSession', {
        json: { identifier: `${crypto.randomUUID().slice(0, 8)}.test`, password: secret },
      }),
  },
  'a new password': {
    opens: [],
    show: (secret) =>
      xrpc('com.atproto.server.resetPassword', { json: { token: secret, password: 'another password' } }),
  },
  'a grant for a code': { opens: [], show: (secret) => new OAuthClient(pds).redeem(secret) },
  'a grant for a refresh token of another key': { opens: [], show: (secret) => new OAuthClient(pds).refresh(secret) },
  'a refreshed session': {
    opens: ['refresh'],
    show: (secret) => xrpc('com.atproto.server.refreshSession', { method: 'POST', headers: bearer(secret) }),
  },
}

describe.each(Object.entries(places))('%s', (_, { opens, show }) => {
  test.each(kinds)('by %s', async (kind) => {
    const { status } = await show(secrets[kind])
    expect({ kind, status, opens: status < 400 }).toEqual({ kind, status, opens: opens.includes(kind) })
    expect(status).toBeLessThan(500)
  })
})

const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
const claimsOf = (token: string) =>
  JSON.parse(Buffer.from(token.split('.')[1]!, 'base64url').toString()) as Record<string, unknown>

describe('a token of somebody else’s making', () => {
  /** With what everybody knows of our keys. */
  async function forgeries(): Promise<string[]> {
    const { keys } = (await request(`${pds.url}/oauth/jwks`)).body as { keys: Record<string, string>[] }
    const [jwk] = keys
    const pem = createPublicKey({ key: jwk as never, format: 'jwk' })
      .export({ type: 'spki', format: 'pem' })
      .toString()
    const known = [
      JSON.stringify(jwk),
      jwk!['x']!,
      Buffer.from(jwk!['x']!, 'base64url'),
      pem,
      '',
      pds.ctx.config.serverDid,
    ]
    const own = newKey()
    return [alice.accessJwt, granted.access_token].flatMap((genuine) => {
      const claims = claimsOf(genuine)
      const [header, payload, signature] = genuine.split('.') as [string, string, string]
      return [
        ...['none', 'None', 'NONE', ''].flatMap((alg) => [
          `${encode({ typ: 'at+jwt', alg })}.${payload}.`,
          `${encode({ typ: 'at+jwt', alg })}.${payload}.${signature}`,
        ]),
        ...known.flatMap((key) =>
          ['HS256', 'HS512', 'ES256'].map((alg) => {
            const signed = `${encode({ typ: 'at+jwt', alg })}.${payload}`
            return `${signed}.${createHmac(alg === 'HS512' ? 'sha512' : 'sha256', key)
              .update(signed)
              .digest('base64url')}`
          }),
        ),
        signJwt(own, { typ: 'at+jwt' }, claims),
        signJwt(own, { typ: 'at+jwt', kid: jwk!['kid'] }, claims),
        signJwt(own, { typ: 'at+jwt', jwk: own.jwk }, claims),
        signJwt(own, { typ: 'at+jwt', jku: 'https://evil.example/jwks' }, claims),
        `${header}.${encode({ ...claims, sub: 'did:plc:somebodyelse' })}.${signature}`,
        `${header}.${payload}.`,
        `${header}.${payload}`,
        `${header}.${payload}.${signature}.${signature}`,
        `${header}.${payload}.${'A'.repeat(86)}`,
      ]
    })
  }

  test('opens nothing, whatever algorithm it claims', async () => {
    for (const token of await forgeries()) {
      for (const answer of [
        await xrpc('com.atproto.server.getSession', { headers: bearer(token) }),
        await client.call(token, 'com.atproto.server.getSession'),
        await upload(bearer(token)),
      ]) {
        expect({ token, status: answer.status, refused: answer.status >= 400 && answer.status < 500 }).toMatchObject({
          refused: true,
        })
      }
    }
  })
})

test('a grant leads nowhere but to the client', async () => {
  for (const redirect_uri of [
    'https://evil.example/',
    'http://127.0.0.1:9/other',
    `${REDIRECT_URI}@evil.example`,
    '//evil.example',
    'javascript:alert(1)',
    `${REDIRECT_URI}\r\nSet-Cookie: a=b`,
  ])
    expect((await new OAuthClient(pds).push({ redirect_uri })).status).toBe(400)
  const odd = new OAuthClient(pds)
  const answer = await odd.decide(await odd.requestUri({ state: 'a\r\nSet-Cookie: a=b&iss=https://evil.example' }), {
    identifier: alice.handle,
    password: alice.password,
  })
  const location = new URL(answer.headers.get('location')!)
  expect(location.href).toStartWith(REDIRECT_URI)
  expect(location.searchParams.getAll('iss')).toEqual([pds.url])
  expect(answer.headers.get('set-cookie')).toBeNull()
  for (const path of [
    '/account/sign-in?return=https://evil.example',
    '/account/sign-up?request_uri=https://evil.example&client_id=x',
  ]) {
    const { body } = await request(`${pds.url}${path}`)
    expect(body).not.toMatch(/(?:href|action)="https:\/\/evil/)
  }
})
