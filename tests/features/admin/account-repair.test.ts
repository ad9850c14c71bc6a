import { expect, test } from 'bun:test'
import { createAccount, logIn, PASSWORD, xrpc } from '../../support/clients/account.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { ADMIN_TOKEN } from '../../support/servers/pds.ts'
import { useWorld } from '../../support/world.ts'
import { thrownBy } from '../../support/thrown.ts'

const { pds } = useWorld({ config: { rateLimit: { enabled: false }, accounts: { passwordOptional: true } } })

const tell = (path: string, json?: object) =>
  request(`${pds.url}/v1/admin/accounts/${path}`, {
    method: 'POST',
    headers: bearer(ADMIN_TOKEN),
    ...(json ? { json } : {}),
  })
const auditOf = async (did: string): Promise<{ action: string; detail?: string }[]> =>
  (await request(`${pds.url}/v1/admin/audit?subject=${did}`, { headers: bearer(ADMIN_TOKEN) })).body.events

test('another address is stored, unconfirmed, without a mail', async () => {
  const alice = await createAccount(pds, 'alice')
  const bob = await createAccount(pds, 'bob')
  expect((await tell(`${alice.did}/email`, { email: ' New@Example.com ' })).body).toEqual({
    did: alice.did,
    email: 'new@example.com',
    emailConfirmed: false,
  })
  expect((await alice.call('com.atproto.server.getSession')).body.email).toBe('new@example.com')
  for (const email of ['none', bob.email])
    expect(await tell(`${alice.did}/email`, { email })).toMatchObject({
      status: 400,
      body: { error: { code: 'InvalidRequest' } },
    })
  expect(pds.mails).toEqual([])
  expect(await auditOf(alice.did)).toMatchObject([{ action: 'email_updated' }])
  expect((await tell('did:plc:aaaaaaaaaaaaaaaaaaaaaaaa/email', { email: 'a@example.com' })).status).toBe(404)
})

test('a reset token is handed out, for an account that has a password', async () => {
  const carol = await createAccount(pds, 'carol')
  const { body } = await tell(`${carol.did}/reset-token`)
  expect(body).toMatchObject({ did: carol.did, expiresIn: 900 })
  expect(
    (await xrpc(pds, 'com.atproto.server.resetPassword', { json: { token: body.token, password: 'given anew' } }))
      .status,
  ).toBe(200)
  expect((await logIn(pds, carol, 'given anew')).did).toBe(carol.did)
  expect(JSON.stringify(await auditOf(carol.did))).not.toContain(body.token)
  const dave = await createAccount(pds, 'dave', { password: undefined })
  expect(await tell(`${dave.did}/reset-token`)).toMatchObject({ status: 400 })
})

test('a reset code is mailed to the account, and told to nobody else', async () => {
  const grace = await createAccount(pds, 'grace')
  const { status, body } = await tell(`${grace.did}/reset-mail`)
  expect({ status, body }).toEqual({ status: 200, body: { did: grace.did, expiresIn: 900 } })
  const mail = pds.mails.at(-1)!
  expect(mail.to).toBe(grace.email)
  const [code = ''] = /^[A-Z0-9]{5}-[A-Z0-9]{5}$/m.exec(mail.text) ?? []
  expect(
    (await xrpc(pds, 'com.atproto.server.resetPassword', { json: { token: code, password: 'another one' } })).status,
  ).toBe(200)
  expect(await auditOf(grace.did)).toMatchObject([{ action: 'reset_token_issued' }])
  const heidi = await createAccount(pds, 'heidi', { password: undefined })
  expect(await tell(`${heidi.did}/reset-mail`)).toMatchObject({ status: 400 })
  expect(await auditOf(heidi.did)).toEqual([])
})

test('every credential but the password is revoked, once', async () => {
  const erin = await createAccount(pds, 'erin')
  const made = (await erin.call('com.atproto.server.createAppPassword', { json: { name: 'app' } })).body
  await logIn(pds, erin, made.password)
  expect((await tell(`${erin.did}/revoke-credentials`)).body).toMatchObject({
    sessionsRevoked: 2,
    appPasswordsRevoked: 1,
    oauthTokensRevoked: 0,
    oauthCodesRevoked: 0,
    agentRegistrationsRevoked: 0,
    transferDeviceTokensRevoked: 0,
  })
  expect((await tell(`${erin.did}/revoke-credentials`)).body).toMatchObject({
    sessionsRevoked: 0,
    appPasswordsRevoked: 0,
  })
  expect(
    (await xrpc(pds, 'com.atproto.server.refreshSession', { method: 'POST', headers: bearer(erin.refreshJwt) })).status,
  ).toBe(400)
  expect(await thrownBy(logIn(pds, erin, made.password))).toThrow('401')
  expect((await logIn(pds, erin, PASSWORD)).did).toBe(erin.did)
  expect(await auditOf(erin.did)).toHaveLength(1)
})

test('repairs are for operators alone', async () => {
  const frank = await createAccount(pds, 'frank')
  for (const repair of ['email', 'reset-token', 'reset-mail', 'revoke-credentials']) {
    const answer = await request(`${pds.url}/v1/admin/accounts/${frank.did}/${repair}`, {
      json: { email: 'x@example.com' },
      headers: bearer(frank.accessJwt),
    })
    expect(answer).toMatchObject({ status: 401, body: { error: { code: 'UNAUTHORIZED' } } })
  }
})
