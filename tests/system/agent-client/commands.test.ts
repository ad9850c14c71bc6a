/** `holdfast agent`: from a registration that somebody confirms to its end. */
import { chmodSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Decrypter } from 'age-encryption'
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { createAccount, logIn, PASSWORD, type TestAccount } from '../../support/clients/account.ts'
import { confirmAgent, pollAgent } from '../../support/clients/agent.ts'
import { AgentUser, shownCode } from '../../support/clients/agent-user.ts'
import { startFalseServer } from '../../support/servers/false-server.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { fixedIssuer, identityAssertion, issuerKey, notifyEvent, revocation } from '../../support/servers/issuer.ts'
import { startPds } from '../../support/servers/pds.ts'
import { startPlcServer } from '../../support/servers/plc-server.ts'
import { walletHolder } from '../../support/clients/wallet-holder.ts'
import { PASSPHRASE } from '../../support/clients/wallet-user.ts'
import { useWorld } from '../../support/world.ts'
import { atOneNode } from '../../support/turns.ts'

const provider = issuerKey('one')
let alice: TestAccount
let user: AgentUser
const { pds } = useWorld({
  config: {
    agentAuth: { anonymousEnabled: true, serviceAuthEnabled: true, trustedIssuers: [fixedIssuer([provider])] },
    rateLimit: { enabled: false },
  },
})
beforeAll(async () => {
  alice = await createAccount(pds, 'alice')
})
beforeEach(async () => {
  user = new AgentUser(pds.clock)
  // Tests let hours pass, which end a session.
  alice = await logIn(pds, alice, PASSWORD)
})
afterEach(() => user[Symbol.dispose]())

const register = async (words: string[] = []) => shownCode(await user.do(['register', '--server', pds.url, ...words]))

async function confirmed() {
  const { status } = await confirmAgent(pds, alice, await register())
  expect(status).toBe(200)
  await user.do(['wait'])
}

const agents = async () => (await request(`${pds.url}/v1/agents`, { headers: bearer(alice.accessJwt) })).body.agents
const revokeAll = async () => {
  for (const { registrationId } of await agents())
    await request(`${pds.url}/v1/agents/${registrationId}/revoke`, { json: {}, headers: bearer(alice.accessJwt) })
}

test('an agent registers, waits until somebody confirms it, and acts for them', async () => {
  const said = await user.do(['register', '--server', pds.url])
  expect(said).toContain(`Open   ${pds.url}/agent/claim`)
  let waits = 0
  user.whenPausing = async () => (++waits === 3 ? confirmAgent(pds, alice, shownCode(said)) : undefined)
  expect(await user.do(['wait'])).toStartWith(`Confirmed: the agent acts for ${alice.did} with the scopes atproto `)
  expect(user.pauses.every((millis) => millis >= 4000 && millis <= 5000)).toBe(true)
  expect(JSON.parse(await user.do(['call', 'com.atproto.server.getSession']))).toMatchObject({ did: alice.did })
  const record = { $type: 'app.bsky.feed.post', text: 'from a script', createdAt: new Date().toISOString() }
  const input = JSON.stringify({ repo: alice.did, collection: 'app.bsky.feed.post', record }, null, 2)
  expect(JSON.parse(await user.do(['call', 'com.atproto.repo.createRecord', '--post'], input))).toMatchObject({
    uri: expect.stringContaining(alice.did),
  })
  const token = await user.do(['token'])
  expect(await request(`${pds.url}/xrpc/com.atproto.server.getSession`, { headers: bearer(token) })).toMatchObject({
    status: 200,
  })
})

test('the credential is sealed, by a key that only its owner can read', async () => {
  await confirmed()
  expect(readFileSync(user.path, 'latin1')).toStartWith('age-encryption.org/v1\n-> X25519 ')
  expect([user.path, `${user.path}.key`].map((path) => statSync(path).mode & 0o777)).toEqual([0o600, 0o600])
  chmodSync(`${user.path}.key`, 0o640)
  expect(await user.run(['token'])).toMatchObject({
    code: 1,
    err: expect.stringContaining('other users of this machine can read'),
  })
})

test('the credential is sealed by a passphrase, if there is one', async () => {
  user.env['HOLDFAST_AGENT_PASSPHRASE'] = 'short'
  expect(await user.run(['register', '--server', pds.url])).toMatchObject({
    code: 1,
    err: expect.stringContaining('at least 8'),
  })
  user.env['HOLDFAST_AGENT_PASSPHRASE'] = 'a passphrase for tests'
  await confirmed()
  expect(existsSync(`${user.path}.key`)).toBe(false)
  expect(readFileSync(user.path, 'latin1')).toStartWith('age-encryption.org/v1\n-> scrypt ')
  delete user.env['HOLDFAST_AGENT_PASSPHRASE']
  expect(await user.run(['token'])).toMatchObject({
    code: 2,
    err: expect.stringContaining('set HOLDFAST_AGENT_PASSPHRASE'),
  })
  user.env['HOLDFAST_AGENT_PASSPHRASE'] = 'another passphrase'
  expect(await user.run(['token'])).toMatchObject({
    code: 1,
    err: expect.stringContaining('the passphrase does not open this agent'),
  })
})

test('with an address, only that account can confirm it', async () => {
  const bob = await createAccount(pds, `bob${pds.clock.now()}`)
  const code = await register(['--type', 'service_auth', '--login-hint', alice.email])
  expect(await confirmAgent(pds, bob, code)).toMatchObject({ status: 403 })
  expect(await confirmAgent(pds, alice, code)).toMatchObject({ status: 200 })
  expect(await user.do(['wait'])).toContain(alice.did)
})

describe('with the word of a provider', () => {
  const words = ['--type', 'identity_assertion']

  test('it is confirmed once, and known afterwards', async () => {
    const claims = { sub: 'by-input' }
    const said = await user.do(
      ['register', '--server', pds.url, ...words],
      identityAssertion(pds, provider, { claims }),
    )
    expect((await confirmAgent(pds, alice, shownCode(said))).status).toBe(200)
    expect(await user.do(['wait'])).toContain(alice.did)
    pds.clock.advance({ secs: 7200 })
    expect(await user.run(['token'])).toMatchObject({ code: 1, err: expect.stringContaining('is not confirmed') })
    expect(await user.do(['register'], identityAssertion(pds, provider, { claims }))).toContain(
      'confirmed this agent before',
    )
    expect(await user.do(['token'])).toStartWith('eyJ')
    expect(await user.run(['register'], '')).toMatchObject({
      code: 1,
      err: expect.stringContaining('no assertion on standard input'),
    })
  })

  test('a file with its newest word renews the credential, until the provider ends the agent', async () => {
    const claims = { sub: 'by-file' }
    const path = join(user.folder, 'assertion.jwt')
    const vouch = () => writeFileSync(path, identityAssertion(pds, provider, { claims }))
    vouch()
    const said = await user.do(['register', '--server', pds.url, ...words, '--assertion-file', path])
    expect((await confirmAgent(pds, alice, shownCode(said))).status).toBe(200)
    await user.do(['wait'])
    pds.clock.advance({ secs: 7200 })
    vouch()
    expect(JSON.parse(await user.do(['call', 'com.atproto.server.getSession']))).toMatchObject({ did: alice.did })
    pds.clock.advance({ secs: 7200 })
    expect(await user.run(['token'])).toMatchObject({ code: 1 })
    vouch()
    expect(await user.do(['token'])).toStartWith('eyJ')
    expect((await notifyEvent(pds, revocation(pds, provider, { claims }))).status).toBe(202)
    const ended = { code: 1, err: expect.stringContaining('may no longer act for the account') }
    expect(await user.run(['token'])).toMatchObject(ended)
    pds.clock.advance({ secs: 7200 })
    vouch()
    expect(await user.run(['token'])).toMatchObject(ended)
  })
})

test('polls that the server finds too frequent become rarer', async () => {
  using _ = atOneNode(pds, 'each node paces clients by itself')
  await register()
  const decrypter = new Decrypter()
  decrypter.addIdentity(readFileSync(`${user.path}.key`, 'utf8').trim())
  const { registration } = JSON.parse(await decrypter.decrypt(readFileSync(user.path), 'text')) as {
    registration: { claimToken: string }
  }
  // Another program polls meanwhile.
  user.whenPausing = async () => (user.pauses.length === 1 ? pollAgent(pds, registration.claimToken) : undefined)
  expect(await user.run(['wait'])).toMatchObject({ code: 1 })
  expect(user.pauses.slice(0, 3).map((millis) => Math.round(millis / 1000))).toEqual([5, 10, 10])
})

test('a code that nobody enters expires, and says so', async () => {
  await register()
  expect(await user.run(['wait'])).toMatchObject({
    code: 1,
    err: expect.stringContaining('the agent is not confirmed'),
  })
  expect(await user.run(['register'])).toMatchObject({ code: 1, err: expect.stringContaining('already registered') })
  expect(await user.run(['register', '--server', 'https://pds.example.com'])).toMatchObject({
    code: 1,
    err: expect.stringContaining(`registered at ${pds.url} as anonymous`),
  })
  await confirmAgent(pds, alice, shownCode(await user.do(['register', '--replace'])))
  expect(await user.do(['wait'])).toContain(alice.did)
})

test('an agent that its owner has ended says so, at once and later', async () => {
  await confirmed()
  await revokeAll()
  const ended = { code: 1, err: expect.stringContaining('may no longer act for the account') }
  expect(await user.run(['call', 'com.atproto.server.getSession'])).toMatchObject(ended)
  pds.clock.advance({ secs: 7200 })
  expect(await user.run(['token'])).toMatchObject(ended)
})

test('what the scopes do not allow is refused with the scope that is missing', async () => {
  await confirmed()
  const input = JSON.stringify({ repo: alice.did, collection: 'app.bsky.feed.post', rkey: '3jzfcijpj2z2a' })
  const { code, err } = await user.run(['call', 'com.atproto.repo.deleteRecord', '--post'], input)
  expect({ code, err }).toEqual({
    code: 1,
    err: expect.stringMatching(/repo:app\.bsky\.feed\.post\?action=delete.*Its scopes are: atproto /s),
  })
})

describe('revoke', () => {
  test('ends the agent with the password of the account, and deletes its file', async () => {
    await confirmed()
    expect(await user.run(['revoke', '--account', alice.handle], 'wrong password')).toMatchObject({ code: 1 })
    const token = await user.do(['token'])
    expect(await user.do(['revoke', '--account', alice.handle], PASSWORD)).toContain('no longer has access')
    expect(existsSync(user.path)).toBe(false)
    expect((await request(`${pds.url}/xrpc/com.atproto.server.getSession`, { headers: bearer(token) })).status).toBe(
      401,
    )
  })

  test('signs out again, also if the agent is that of another account', async () => {
    await confirmed()
    const bob = await createAccount(pds, `bob${pds.clock.now()}`)
    const sessions = ({ did }: TestAccount) => pds.count('session', { did })
    const before = [await sessions(alice), await sessions(bob)]
    expect(await user.run(['revoke', '--account', bob.handle], PASSWORD)).toMatchObject({
      code: 1,
      err: expect.stringContaining('No such agent'),
    })
    expect(existsSync(user.path)).toBe(true)
    await user.do(['revoke', '--account', alice.handle], PASSWORD)
    expect([await sessions(alice), await sessions(bob)]).toEqual(before)
  })

  test('ends the agent with the wallet of the account, and with no other', async () => {
    await using plc = await startPlcServer()
    await using own = await startPds({
      agentAuth: { anonymousEnabled: true },
      plcDirectoryUrl: plc.url,
      rateLimit: { enabled: false },
    })
    using carol = await walletHolder(own, plc.url, 'carol')
    using dave = await walletHolder(own, plc.url, 'dave')
    using agent = new AgentUser(own.clock)
    Object.assign(agent.env, { HOLDFAST_WALLET_PASSPHRASE: PASSPHRASE, HOLDFAST_WALLET_WORK_FACTOR: '10' })
    const said = await agent.do(['register', '--server', own.url])
    expect((await confirmAgent(own, await logIn(own, carol.account, PASSWORD), shownCode(said))).status).toBe(200)
    await agent.do(['wait'])
    const token = await agent.do(['token'])
    const seen = () => request(`${own.url}/xrpc/com.atproto.server.getSession`, { headers: bearer(token) })

    const wrong: [string, RegExp][] = [
      [dave.user.path(), /No such agent/],
      [join(agent.folder, 'none.age'), /there is no wallet/],
      [agent.path, /does not open|is not|format/],
    ]
    for (const [path, fault] of wrong) {
      expect(await agent.run(['revoke', '--wallet', path])).toMatchObject({
        code: 1,
        err: expect.stringMatching(fault),
      })
      expect((await seen()).status).toBe(200)
    }
    expect(await agent.do(['revoke', '--wallet', carol.user.path()])).toContain('no longer has access')
    expect((await seen()).status).toBe(401)
    expect(existsSync(agent.path)).toBe(false)
  })

  test('goes to no server but the one of the agent', async () => {
    await using plc = await startPlcServer()
    await using own = await startPds({ plcDirectoryUrl: plc.url, rateLimit: { enabled: false } })
    using carol = await walletHolder(own, plc.url, 'carol')
    Object.assign(user.env, { HOLDFAST_WALLET_PASSPHRASE: PASSPHRASE, HOLDFAST_WALLET_WORK_FACTOR: '10' })
    await confirmed()
    expect(await user.run(['revoke', '--wallet', carol.user.path()])).toMatchObject({
      code: 1,
      err: expect.stringContaining(`the wallet is for ${own.url}, and the agent is registered at ${pds.url}`),
    })
    expect(await user.do(['token'])).toStartWith('eyJ')
  })

  test('revoke says what is missing', async () => {
    await confirmed()
    expect(await user.run(['revoke'])).toMatchObject({ code: 2, err: expect.stringContaining('--account') })
  })
})

describe('is misused', () => {
  test.each([
    ['without a server', []],
    ['with another type', ['--server', 'https://pds.example.com', '--type', 'robot']],
    ['with service_auth and no address', ['--server', 'https://pds.example.com', '--type', 'service_auth']],
    ['with an address that is not used', ['--server', 'https://pds.example.com', '--login-hint', 'a@example.com']],
  ])('%s', async (_, words) => {
    expect(await user.run(['register', ...words])).toMatchObject({ code: 2 })
    expect(existsSync(user.path)).toBe(false)
  })

  test('for a method that is none, and input that is not JSON', async () => {
    expect(await user.run(['call', '../../features/admin'])).toMatchObject({ code: 2 })
    expect(await user.run(['call', 'com.atproto.repo.createRecord', '--post'], '{')).toMatchObject({ code: 2 })
    expect(await user.run(['token'])).toMatchObject({
      code: 1,
      err: expect.stringContaining('run "holdfast agent register"'),
    })
  })

  test('for a server that would get it unencrypted', async () => {
    expect(await user.run(['register', '--server', 'http://pds.example.com'])).toMatchObject({
      code: 1,
      err: expect.stringContaining('use https'),
    })
  })
})

describe('a server that lies gets no credential', () => {
  const RESOURCE = 'GET /.well-known/oauth-protected-resource'
  const METADATA = 'GET /.well-known/oauth-authorization-server'
  const types = ['anonymous']
  test.each([
    [
      'that names endpoints at another host',
      (url: string) => ({ issuer: url, token_endpoint: 'https://bank.example/token', agent_auth: endpoints(url) }),
    ],
    ['that offers no agents', (url: string) => ({ issuer: url, token_endpoint: `${url}/token` })],
    [
      'that is another issuer',
      (url: string) => ({ issuer: 'https://bank.example', token_endpoint: `${url}/token`, agent_auth: endpoints(url) }),
    ],
    [
      'that takes no such agent',
      (url: string) => ({
        issuer: url,
        token_endpoint: `${url}/token`,
        agent_auth: { ...endpoints(url), identity_types_supported: [] },
      }),
    ],
  ])('%s', async (_, metadata) => {
    await using server = startFalseServer()
    server.answers = {
      [RESOURCE]: { resource: server.url, authorization_servers: [server.url] },
      [METADATA]: metadata(server.url),
    }
    expect(await user.run(['register', '--server', server.url])).toMatchObject({ code: 1 })
    expect(server.requests.filter((name) => name.startsWith('POST'))).toEqual([])
    expect(existsSync(user.path)).toBe(false)
  })

  test('no code reaches a person in a form that misleads them', async () => {
    await using server = startFalseServer()
    const claim = (user_code: string, verification_uri: string) => ({
      claim_attempt: { user_code, verification_uri },
      expires_at: '2030-01-01T00:00:00Z',
    })
    server.answers = {
      [RESOURCE]: { resource: server.url, authorization_servers: [server.url] },
      [METADATA]: { issuer: server.url, token_endpoint: `${server.url}/token`, agent_auth: endpoints(server.url) },
      'POST /agent/identity': { registration_id: 'reg_x', claim_token: 'clm_x' },
    }
    for (const lie of [
      claim('\u001b[2J', server.url),
      claim('123456', 'javascript:alert(1)'),
      claim('123456', 'http://bank.example/'),
      claim('run rm -rf', server.url),
      {},
    ]) {
      server.answers['POST /agent/identity/claim'] = lie
      expect(await user.run(['register', '--server', server.url])).toMatchObject({ code: 1, out: '' })
    }
    expect(existsSync(user.path)).toBe(false)
  })

  const endpoints = (url: string) => ({
    identity_endpoint: `${url}/agent/identity`,
    claim_endpoint: `${url}/agent/identity/claim`,
    identity_types_supported: types,
  })
})
