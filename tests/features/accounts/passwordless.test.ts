/** Accounts without a password: how they come about, what opens them, and how they get a password. */
import { expect, test } from 'bun:test'
import { holder, logIn, PASSWORD, xrpc, type TestAccount } from '../../support/clients/account.ts'
import { bear, begin, forCeremonies, prepared, sendDid } from '../../support/clients/ceremony.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { lastCode } from '../../support/servers/mail.ts'
import { OAuthClient } from '../../support/clients/oauth-client.ts'
import { ADMIN_TOKEN } from '../../support/servers/pds.ts'
import { moveIn, stranger } from '../../support/clients/stranger.ts'
import {
  askSession,
  sessionRequest,
  sovereignAccount,
  walletSession,
  type DeviceKey,
} from '../../support/clients/wallet.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'

const config = { ...forCeremonies, accounts: { passwordOptional: true } }

const { pds } = useWorld({ config })
const alice = setUp(() => sovereignAccount(pds, 'alice', { password: undefined }))

const createSession = (identifier: string, password: string) =>
  xrpc(pds, 'com.atproto.server.createSession', { json: { identifier, password } })
const signUp = (name: string, changes: object, headers: Record<string, string> = {}) =>
  xrpc(pds, 'com.atproto.server.createAccount', {
    json: { handle: `${name}.test`, email: `${name}@example.com`, ...changes },
    headers,
  })
const hashOf = async (did: string) => (await pds.rows('account', { did }))[0]!.password_hash
const byDevice = async (account: { did: string; email: string; device: DeviceKey }): Promise<TestAccount> => {
  const { status, body } = await askSession(pds, sessionRequest(pds, account))
  expect(status).toBe(200)
  return holder(pds, { email: account.email, password: '', ...body })
}
const withoutSuch = {
  status: 401,
  body: { error: 'AuthenticationRequired', message: 'Invalid identifier or password' },
}

test('the operator decides whether new accounts need a password; those that exist go on', async () => {
  const offered = async () =>
    (await xrpc(pds, 'com.atproto.server.describeServer')).body.custos.capabilities.includes('optionalPassword')
  expect(await offered()).toBe(true)
  expect(await hashOf(alice.did)).toBeNull()
  await pds.restart({ accounts: { passwordOptional: false } })
  expect(await offered()).toBe(false)
  expect(await signUp('ruth', {})).toMatchObject({ status: 400, body: { error: 'InvalidPassword' } })
  expect((await byDevice(alice)).did).toBe(alice.did)
  const wallet = await begin(pds, 'pending')
  const request = { ...(await prepared(pds, wallet)), password: null }
  expect(await sendDid(pds, wallet, request)).toMatchObject({ status: 400, body: { error: { code: 'INVALID_CLAIM' } } })
  await pds.restart(config)
})

test('an empty password is never one, whoever makes the account', async () => {
  const empty = { status: 400, body: { error: 'InvalidPassword' } }
  const mover = await stranger(pds, 'k256')
  for (const passwordOptional of [true, false]) {
    await pds.restart({ accounts: { passwordOptional } })
    expect(await signUp('emil', { password: '' })).toMatchObject(empty)
    expect(await signUp('emil', { password: '', did: mover.did }, bearer(mover.token()))).toMatchObject(empty)
    const wallet = await begin(pds, `empty-${passwordOptional}`)
    expect(await sendDid(pds, wallet, { ...(await prepared(pds, wallet)), password: '' })).toMatchObject({
      status: 400,
      body: { error: { code: 'INVALID_CLAIM' } },
    })
  }
  await pds.restart(config)
})

test('whoever moves in needs no password, whatever the operator says of new accounts', async () => {
  await pds.restart({ accounts: { passwordOptional: false } })
  const mover = await stranger(pds, 'k256')
  const { status, body } = await signUp('mover', { did: mover.did }, bearer(mover.token()))
  expect([status, await hashOf(mover.did)]).toEqual([200, null])
  expect((await xrpc(pds, 'com.atproto.server.getSession', { headers: bearer(body.accessJwt) })).body).toMatchObject({
    active: false,
  })
  const other = await stranger(pds, 'p256')
  await moveIn(pds, other, 'with-password')
  expect(await hashOf(other.did)).not.toBeNull()
  await pds.restart(config)
})

test('no text is the password of an account without one, and nobody is told that it has none', async () => {
  for (const identifier of [alice.handle, alice.did, alice.email, 'nobody.test', 'nobody@example.com']) {
    for (const password of ['', ' ', 'null', PASSWORD, 'aaaa-bbbb-cccc-dddd'])
      expect([identifier, await createSession(identifier, password)]).toMatchObject([identifier, withoutSuch])
    pds.clock.advance({ secs: 61 }) // the failures are forgotten
  }
  const provisioned = { json: { email: alice.email, password: PASSWORD } }
  expect(await request(`${pds.url}/v1/accounts/sessions`, provisioned)).toMatchObject({
    status: 401,
    body: { error: { code: 'AUTHENTICATION_REQUIRED' } },
  })
  const app = new OAuthClient(pds)
  const decided = await app.decide(await app.requestUri(), { identifier: alice.handle, password: '' })
  expect(decided.status).not.toBe(303)
  const form = new URLSearchParams({ identifier: alice.handle, password: PASSWORD }).toString()
  const signedIn = await request(`${pds.url}/account/sign-in`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: form,
  })
  expect(signedIn.body).toContain('The account or the password is wrong.')
  expect(signedIn.headers.get('set-cookie')).not.toMatch(/^holdfast=/)
  const deletion = { did: alice.did, password: PASSWORD, token: 'AAAAA-BBBBB' }
  expect((await xrpc(pds, 'com.atproto.server.deleteAccount', { json: deletion })).status).toBe(401)
})

test('app passwords open it, and only a session of the account itself makes them', async () => {
  const self = await byDevice(alice)
  const name = 'a phone'
  const made = await self.call('com.atproto.server.createAppPassword', { json: { name } })
  expect(made).toMatchObject({ status: 200, body: { name, privileged: false, personalDetails: false } })
  const phone = await logIn(pds, alice, made.body.password)
  expect((await phone.call('com.atproto.server.getSession')).body.did).toBe(alice.did)
  for (const method of ['createAppPassword', 'revokeAppPassword'])
    expect((await phone.call(`com.atproto.server.${method}`, { json: { name: 'another' } })).status).toBe(400)
  const wallet = bearer(await walletSession(pds, alice.did))
  expect(
    (await xrpc(pds, 'com.atproto.server.createAppPassword', { json: { name: 'x' }, headers: wallet })).status,
  ).toBe(400)
  expect(await self.call('com.atproto.server.createAppPassword', { json: { name } })).toMatchObject({
    status: 400,
    body: { error: 'InvalidRequest' },
  })
  expect((await self.call('com.atproto.server.listAppPasswords')).body.passwords).toMatchObject([
    { name, privileged: false, personalDetails: false },
  ])
  expect((await self.call('com.atproto.server.revokeAppPassword', { json: { name } })).status).toBe(200)
  const refreshed = await xrpc(pds, 'com.atproto.server.refreshSession', {
    method: 'POST',
    headers: bearer(phone.refreshJwt),
  })
  expect(refreshed.status).toBe(400)
  expect(await createSession(alice.handle, made.body.password)).toMatchObject(withoutSuch)
})

test('the operator resets no password that there is not, and mails no code', async () => {
  // Mails about what came before.
  await pds.runSteps()
  const sent = pds.mails.length
  for (const route of ['reset-token', 'reset-mail'])
    expect(
      await request(`${pds.url}/v1/admin/accounts/${alice.did}/${route}`, {
        method: 'POST',
        headers: bearer(ADMIN_TOKEN),
      }),
    ).toMatchObject({ status: 400, body: { error: { code: 'InvalidRequest' } } })
  await pds.runSteps()
  expect(pds.mails.length).toBe(sent)
})

test('whoever reads its mail gives it a password, and its device goes on', async () => {
  const rosa = await bear(pds, 'rosa', { password: null })
  expect(await hashOf(rosa.did)).toBeNull()
  expect((await xrpc(pds, 'com.atproto.server.requestPasswordReset', { json: { email: rosa.email } })).status).toBe(200)
  const token = await lastCode(pds, rosa.email)
  const reset = (password: string) => xrpc(pds, 'com.atproto.server.resetPassword', { json: { token, password } })
  for (const refused of ['', 'seven c']) expect((await reset(refused)).status).toBe(400)
  expect((await reset(PASSWORD)).status).toBe(200)
  expect((await createSession(rosa.did, PASSWORD)).status).toBe(200)
  expect((await reset('once more, please')).status).toBe(400)
  expect((await byDevice(rosa)).did).toBe(rosa.did)
  // A password makes the operator's reset possible.
  const operated = await request(`${pds.url}/v1/admin/accounts/${rosa.did}/reset-token`, {
    method: 'POST',
    headers: bearer(ADMIN_TOKEN),
  })
  expect(operated.status).toBe(200)
})
