import { expect, test } from 'bun:test'
import { createAccount, logIn, PASSWORD, xrpc, type TestAccount } from '../../support/clients/account.ts'
import { basic, bearer, request } from '../../support/clients/http.ts'
import { ADMIN_TOKEN } from '../../support/servers/pds.ts'
import { useWorld } from '../../support/world.ts'
import { thrownBy } from '../../support/thrown.ts'

const { pds } = useWorld({ config: { rateLimit: { enabled: false } } })

const operator = (nsid: string, init: { json?: object } = {}) =>
  xrpc(pds, nsid, { ...init, headers: basic('admin', ADMIN_TOKEN) })
const session = (identifier: string, password: string) =>
  xrpc(pds, 'com.atproto.server.createSession', { json: { identifier, password } })
const audit = async (): Promise<{ action: string; subject: string }[]> =>
  (await request(`${pds.url}/v1/admin/audit`, { headers: bearer(ADMIN_TOKEN) })).body.events

test('the operator sees accounts in any state', async () => {
  const alice = await createAccount(pds, 'alice')
  const bob = await createAccount(pds, 'bob')
  await bob.call('com.atproto.server.deactivateAccount', { json: {} })
  const { body } = await operator(`com.atproto.admin.getAccountInfo?did=${bob.did}`)
  expect(body).toMatchObject({
    did: bob.did,
    handle: 'bob.test',
    email: bob.email,
    invites: [],
    invitesDisabled: false,
  })
  expect(body.deactivatedAt).toBeString()
  expect(body.emailConfirmedAt).toBeUndefined()
  const infos = await operator(
    `com.atproto.admin.getAccountInfos?dids=${alice.did}&dids=did:plc:aaaaaaaaaaaaaaaaaaaaaaaa&dids=${bob.did}`,
  )
  expect(infos.body.infos.map(({ did }: TestAccount) => did)).toEqual([alice.did, bob.did])
  expect(await operator('com.atproto.admin.getAccountInfo?did=did:plc:aaaaaaaaaaaaaaaaaaaaaaaa')).toMatchObject({
    status: 400,
    body: { error: 'NotFound', message: 'Account not found' },
  })
})

test('accounts are found by part of their address, page by page', async () => {
  for (const name of ['finder-a', 'finder-b', 'finder-c']) await createAccount(pds, name)
  const first = (await operator('com.atproto.admin.searchAccounts?email=FINDER-&limit=2')).body
  const second = (await operator(`com.atproto.admin.searchAccounts?email=finder-&limit=2&cursor=${first.cursor}`)).body
  expect([...first.accounts, ...second.accounts].map(({ handle }: TestAccount) => handle)).toEqual([
    'finder-a.test',
    'finder-b.test',
    'finder-c.test',
  ])
  expect(second.cursor).toBeUndefined()
  expect((await operator('com.atproto.admin.searchAccounts?email=%25')).body.accounts).toEqual([])
})

test('address, handle and password are repaired, and what was done is on record', async () => {
  const carol = await createAccount(pds, 'carol')
  expect(
    (
      await operator('com.atproto.admin.updateAccountEmail', {
        json: { account: 'carol.test', email: 'New@Example.com' },
      })
    ).status,
  ).toBe(200)
  expect(
    (await operator('com.atproto.admin.updateAccountHandle', { json: { did: carol.did, handle: 'support.test' } }))
      .status,
  ).toBe(200)
  expect(
    (await operator('com.atproto.admin.updateAccountPassword', { json: { did: carol.did, password: 'given anew' } }))
      .status,
  ).toBe(200)
  expect((await session('support.test', 'given anew')).body).toMatchObject({
    did: carol.did,
    email: 'new@example.com',
    emailConfirmed: false,
  })
  expect(
    (await xrpc(pds, 'com.atproto.server.refreshSession', { method: 'POST', headers: bearer(carol.refreshJwt) }))
      .status,
  ).toBe(400)
  const events = await audit()
  expect(events.filter(({ subject }) => subject === carol.did).map(({ action }) => action)).toEqual([
    'password_updated',
    'handle_updated',
    'email_updated',
  ])
  expect(JSON.stringify(events)).not.toContain('example.com')
})

test('a repair that makes no sense is refused', async () => {
  const dave = await createAccount(pds, 'dave')
  const other = await createAccount(pds, 'oscar')
  const refused: [string, object, RegExp][] = [
    ['updateAccountEmail', { account: 'nobody.test', email: 'a@example.com' }, /^Account does not exist: nobody.test$/],
    ['updateAccountEmail', { account: dave.did, email: 'none' }, /not supported/],
    ['updateAccountEmail', { account: dave.did, email: other.email }, /already in use/],
    ['updateAccountHandle', { did: dave.did, handle: 'oscar.test' }, /already taken/],
    ['updateAccountPassword', { did: dave.did, password: 'seven c' }, /^Password too short/],
    ['updateAccountPassword', { did: dave.did, password: 'x'.repeat(257) }, /^Invalid password length.$/],
    [
      'updateAccountPassword',
      { did: 'did:plc:aaaaaaaaaaaaaaaaaaaaaaaa', password: 'long enough' },
      /^Account not found$/,
    ],
  ]
  for (const [method, json, message] of refused) {
    const answer = await operator(`com.atproto.admin.${method}`, { json })
    expect({ method, status: answer.status }).toEqual({ method, status: 400 })
    expect(answer.body.message).toMatch(message)
  }
})

test('the operator writes to an account holder', async () => {
  const erin = await createAccount(pds, 'erin')
  const json = { recipientDid: erin.did, senderDid: pds.ctx.config.serverDid, content: 'Hello Erin' }
  expect((await operator('com.atproto.admin.sendEmail', { json })).body).toEqual({ sent: true })
  expect(pds.mails.at(-1)).toEqual({ to: erin.email, subject: 'Message via your PDS', text: 'Hello Erin' })
  expect(
    await operator('com.atproto.admin.sendEmail', {
      json: { ...json, recipientDid: 'did:plc:aaaaaaaaaaaaaaaaaaaaaaaa' },
    }),
  ).toMatchObject({ status: 400, body: { message: 'Recipient not found' } })
  for (const subject of ['Hello\r\nBcc: mallory@example.com', 'Hello\n'])
    expect(await operator('com.atproto.admin.sendEmail', { json: { ...json, subject } })).toMatchObject({
      status: 400,
      body: { message: 'The subject must be one line' },
    })
  expect(await pds.rows('step')).toEqual([])
})

test('the operator deletes an account, and one that is not there', async () => {
  const frank = await createAccount(pds, 'frank')
  expect((await operator('com.atproto.admin.deleteAccount', { json: { did: frank.did } })).status).toBe(200)
  expect((await operator('com.atproto.admin.deleteAccount', { json: { did: frank.did } })).status).toBe(200)
  expect(await thrownBy(logIn(pds, frank, PASSWORD))).toThrow('401')
})
