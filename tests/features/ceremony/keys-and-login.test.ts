/** Keys that the server makes for accounts in the making and for operators, and signing in to what a ceremony made. */
import { AtpAgent } from '@atproto/api'
import { describe, expect, test } from 'bun:test'
import { Secret } from '../../../src/base/secret.ts'
import { rewrap } from '../../../src/platform/secrets/rewrap.ts'
import { Vault } from '../../../src/platform/secrets/vault.ts'
import { formatBareMultibase, parseDidKey } from '../../../src/protocol/keys.ts'
import { createAccount, PASSWORD, xrpc } from '../../support/clients/account.ts'
import {
  bear,
  begin,
  claimCode,
  forCeremonies,
  mobile,
  newWallet,
  operate,
  prepared,
  sendDid,
  signingKeyFor,
} from '../../support/clients/ceremony.ts'
import { bearer, request, type Answer } from '../../support/clients/http.ts'
import { ADMIN_TOKEN, startPds, type TestPds } from '../../support/servers/pds.ts'
import { runProgram } from '../../support/servers/program.ts'
import { useWorld } from '../../support/world.ts'
import { atOneNode } from '../../support/turns.ts'

const { pds } = useWorld({ config: { ...forCeremonies, accounts: { passwordOptional: true } } })

const refused = (status: number, code: string) => ({ status, body: { error: { code } } })

describe('keys of operators', () => {
  test('are made on demand, recorded, and the newest is public', async () => {
    const read = () => request(`${pds.url}/v1/pds/keys`)
    expect(await read()).toMatchObject(refused(503, 'SERVICE_UNAVAILABLE'))
    expect(await operate(pds, '/v1/pds/keys', { algorithm: 'k256' })).toMatchObject(refused(422, 'InvalidRequest'))
    expect(await operate(pds, '/v1/pds/keys', {})).toMatchObject(refused(422, 'InvalidRequest'))
    expect(await request(`${pds.url}/v1/pds/keys`, { json: { algorithm: 'p256' } })).toMatchObject(
      refused(401, 'UNAUTHORIZED'),
    )
    const first = await operate(pds, '/v1/pds/keys', { algorithm: 'p256' })
    const second = await operate(pds, '/v1/pds/keys', { algorithm: 'p256' })
    expect([first.status, second.status]).toEqual([200, 200])
    expect(first.body.keyId).not.toBe(second.body.keyId)
    expect(second.body).toEqual({
      keyId: second.body.keyId,
      publicKey: formatBareMultibase(parseDidKey(second.body.keyId)!),
      algorithm: 'p256',
    })
    expect(await read()).toMatchObject({ status: 200, body: second.body })
    const { body } = await operate(pds, '/v1/admin/audit?action=signing_key_created')
    expect(body.events.map(({ subject }: { subject: string }) => subject)).toEqual([
      second.body.keyId,
      first.body.keyId,
    ])
  })
})

describe('without a configured master key', () => {
  test('nothing that makes a key or an identity is done, whatever the request says', async () => {
    await using bare = await startPds({ rateLimit: { enabled: false } }, { alone: 'it has no master key' })
    const unavailable = refused(503, 'SERVICE_UNAVAILABLE')
    const wallet = { ...newWallet('keyless'), code: await claimCode(bare) }
    const { status, body } = await mobile(bare, wallet)
    expect(status).toBe(201)
    const going = { ...wallet, token: body.sessionToken as string }
    expect(await signingKeyFor(bare, going)).toMatchObject(unavailable)
    expect(await signingKeyFor(bare, { ...going, token: 'x' })).toMatchObject(unavailable)
    for (const json of [{}, [], 'x', { rotationKeyPublic: 1 }])
      expect(await sendDid(bare, going, json)).toMatchObject(unavailable)
    const plain = await fetch(`${bare.url}/v1/dids`, { method: 'POST', headers: bearer(going.token), body: '{' })
    expect(plain.status).toBe(503)
    expect(await operate(bare, '/v1/pds/keys', {})).toMatchObject(unavailable)
    expect(await request(`${bare.url}/v1/pds/keys`)).toMatchObject(unavailable)
    const { body: described } = await xrpc(bare, 'com.atproto.server.describeServer')
    expect(described.custos.capabilities).not.toContain('createCeremony')
  })
})

describe('signing in with address and password', () => {
  const logIn = (json: unknown, on: Pick<TestPds, 'url'> = pds): Promise<Answer> =>
    request(`${on.url}/v1/accounts/sessions`, { json })
  const WRONG = refused(401, 'AUTHENTICATION_REQUIRED')

  test('opens a session for the routes of owners, and for no other', async () => {
    const alice = await bear(pds, 'alice')
    const { status, body } = await logIn({ email: ' Alice@Example.com', password: PASSWORD })
    expect({ status, body }).toEqual({
      status: 200,
      body: { sessionToken: expect.stringMatching(/^[\w-]{43}$/), did: alice.did },
    })
    expect(
      await request(`${pds.url}/v1/handles`, {
        headers: bearer(body.sessionToken),
        json: { accountId: alice.did, handle: alice.handle },
      }),
    ).toMatchObject({ status: 200 })
    expect((await xrpc(pds, 'com.atproto.server.getSession', { headers: bearer(body.sessionToken) })).status).not.toBe(
      200,
    )
    pds.clock.advance({ secs: 365 * 24 * 3600 })
    expect(
      await request(`${pds.url}/v1/handles/${alice.handle}`, { method: 'DELETE', headers: bearer(body.sessionToken) }),
    ).toMatchObject({
      status: 401,
    })
  })

  test('is refused in one way, whatever is wrong', async () => {
    const wallet = await begin(pds, 'passwordless')
    expect(await sendDid(pds, wallet, { ...(await prepared(pds, wallet)), password: null })).toMatchObject({
      status: 200,
    })
    const bob = await createAccount(pds, 'bob')
    const inactive = await createAccount(pds, 'inactive')
    await inactive.call('com.atproto.server.deactivateAccount', { json: {} })
    const takendown = await createAccount(pds, 'takendown')
    await operate(pds, '/xrpc/com.atproto.admin.updateSubjectStatus', {
      subject: { $type: 'com.atproto.admin.defs#repoRef', did: takendown.did },
      takedown: { applied: true },
    })
    await begin(pds, 'unborn')
    const answers = await Promise.all([
      logIn({ email: 'nobody@example.com', password: PASSWORD }),
      logIn({ email: bob.email, password: 'wrong password' }),
      logIn({ email: bob.email, password: '' }),
      logIn({ email: bob.email, password: 'x'.repeat(1000) }),
      logIn({ email: wallet.email, password: PASSWORD }),
      logIn({ email: inactive.email, password: PASSWORD }),
      logIn({ email: takendown.email, password: PASSWORD }),
      logIn({ email: 'unborn@example.com', password: PASSWORD }),
      // Only addresses name accounts here.
      logIn({ email: bob.handle, password: PASSWORD }),
      logIn({ email: bob.did, password: PASSWORD }),
    ])
    expect(new Set(answers.map(({ status, body }) => JSON.stringify({ status, body }))).size).toBe(1)
    expect(answers[0]).toMatchObject(WRONG)
    for (const json of [{}, { email: bob.email }, { email: bob.email, password: 1 }])
      expect(await logIn(json)).toMatchObject(refused(422, 'InvalidRequest'))
  })

  test('counts failures together with every other way of signing in', async () => {
    const carol = await createAccount(pds, 'carol')
    for (let i = 0; i < 3; i++) expect(await logIn({ email: carol.email, password: `guess ${i}` })).toMatchObject(WRONG)
    const byXrpc = (password: string) =>
      xrpc(pds, 'com.atproto.server.createSession', { json: { identifier: carol.email.toUpperCase(), password } })
    for (let i = 0; i < 2; i++) expect((await byXrpc(`guess ${i}`)).status).toBe(401)
    expect(await logIn({ email: carol.email, password: PASSWORD })).toMatchObject(refused(429, 'RATE_LIMITED'))
    expect((await byXrpc(PASSWORD)).status).toBe(429)
    pds.clock.advance({ secs: 61 })
    expect(await logIn({ email: carol.email, password: PASSWORD })).toMatchObject({ status: 200 })
    for (let i = 0; i < 4; i++) expect(await logIn({ email: carol.email, password: `guess ${i}` })).toMatchObject(WRONG)
    expect(await logIn({ email: carol.email, password: PASSWORD })).toMatchObject({ status: 200 })
    for (let i = 0; i < 4; i++) expect(await logIn({ email: carol.email, password: `guess ${i}` })).toMatchObject(WRONG)
  })

  test('shares the limit of its address with other passwords', async () => {
    await using limited = await startPds({ ...forCeremonies, rateLimit: { createSessionPer5min: 2 } })
    using _ = atOneNode(limited, 'the last request of a limit is counted, and each node may let one more through')
    for (const email of ['a@example.com', 'b@example.com'])
      expect(await logIn({ email, password: PASSWORD }, limited)).toMatchObject(WRONG)
    expect(await logIn({ email: 'c@example.com', password: PASSWORD }, limited)).toMatchObject(
      refused(429, 'RATE_LIMITED'),
    )
    expect(
      (await xrpc(limited, 'com.atproto.server.createSession', { json: { identifier: 'd.test', password: PASSWORD } }))
        .status,
    ).toBe(429)
  })

  test('ends with the password that opened it', async () => {
    const dora = await createAccount(pds, 'dora')
    const { body } = await logIn({ email: dora.email, password: PASSWORD })
    await operate(pds, '/xrpc/com.atproto.admin.updateAccountPassword', { did: dora.did, password: 'another password' })
    expect(await pds.rows('wallet_session', { did: dora.did }, ['did'])).toEqual([])
    expect(
      await request(`${pds.url}/v1/handles`, {
        headers: bearer(body.sessionToken),
        json: { accountId: dora.did, handle: 'dora2.test' },
      }),
    ).toMatchObject({ status: 401 })
  })
})

test('keys of ceremonies and of operators move to another master key, and a ceremony that has begun goes on', async () => {
  const [before, after] = [new Uint8Array(32).fill(1), new Uint8Array(32).fill(2)]
  await using moved = await startPds({ ...forCeremonies, signingKeyMasterKey: new Secret(before) })
  const wallet = await begin(moved, 'moved')
  const json = await prepared(moved, wallet)
  const { body: key } = await operate(moved, '/v1/pds/keys', { algorithm: 'p256' })
  expect(await rewrap(moved.ctx.db, new Vault(before), new Vault(after))).toMatchObject({
    'ceremony.signing_key_wrapped': 1,
    'operator_key.wrapped': 1,
  })
  await moved.restart({ signingKeyMasterKey: new Secret(after) })
  expect(await request(`${moved.url}/v1/pds/keys`)).toMatchObject({ body: key })
  const { body } = await sendDid(moved, wallet, json)
  await request(`${moved.url}/v1/handles`, {
    headers: bearer(body.session_token),
    json: { accountId: body.did, handle: wallet.handle },
  })
  const agent = new AtpAgent({ service: moved.url })
  await agent.login({ identifier: wallet.handle, password: PASSWORD })
  await agent.post({ text: 'Signed with the key that was moved' })
})

test('operators see ceremonies in the terminal', async () => {
  await begin(pds, 'listed')
  pds.clock.advance({ secs: 2 * 3600 })
  await operate(pds, '/v1/accounts', { email: 'waiting@example.com', handle: 'waiting.test', tier: 'free' })
  const { code, out } = await runProgram(['account', 'ceremonies', '--url', pds.url], {
    SERVICE_ADMIN_TOKEN: ADMIN_TOKEN,
  })
  const [title, ...rows] = out.trimEnd().split('\n')
  expect({ code, title }).toEqual({
    code: 0,
    title: expect.stringMatching(/^HANDLE +STATE +AGE +CODE +SESSION +IDENTITY$/),
  })
  expect(rows.slice(0, 2)).toEqual([
    expect.stringMatching(/^waiting\.test +created +\d+ s +yes +no +-$/),
    expect.stringMatching(/^listed\.test +created +2 h +no +yes +-$/),
  ])
})
