/** Mail to unconfirmed addresses, which may be those of strangers. */
import { expect, test } from 'bun:test'
import { createAccount, xrpc, type TestAccount } from '../../support/clients/account.ts'
import { basic, bearer, request } from '../../support/clients/http.ts'
import {
  initiate,
  newRecoveryCode,
  newShare,
  putShare,
  release,
  withMasterKey,
} from '../../support/clients/recovery.ts'
import { lastCode } from '../../support/servers/mail.ts'
import { ADMIN_TOKEN, startPds, type TestPds } from '../../support/servers/pds.ts'

const mailsTo = ({ mails }: TestPds, address: string) => mails.filter(({ to }) => to === address).length

/** Cause mails to the present address of an account. */
async function causeMails(pds: TestPds, account: TestAccount, count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    const made = await account.call('com.atproto.server.createAppPassword', { json: { name: `app ${Math.random()}` } })
    expect(made.status).toBe(200)
  }
  await pds.runSteps()
}

test("accounts that give a stranger's address one after another cannot fill the mailbox", async () => {
  await using pds = await startPds()
  const victim = 'stranger@example.com'
  for (const name of ['one', 'two', 'three', 'four']) {
    const account = await createAccount(pds, name)
    const give = (email: string) => account.call('com.atproto.server.updateEmail', { json: { email } })
    expect((await give(victim)).status).toBe(200)
    await causeMails(pds, account, 10)
    await account.call('com.atproto.server.requestAccountDelete', { method: 'POST' })
    expect((await give(`${name}@elsewhere.example.com`)).status).toBe(200)
  }
  await pds.runSteps()
  expect(mailsTo(pds, victim)).toBe(20)
  // Later it gets some again, and what the account holders themselves gave does not count.
  const account = await createAccount(pds, 'five')
  await causeMails(pds, account, 10)
  expect(mailsTo(pds, account.email)).toBe(10)
})

/** Strangers use up what they can have mailed to the address of an account. */
async function besiege(pds: TestPds, { email, did }: TestAccount): Promise<void> {
  for (let quarters = 0; quarters < 20; quarters++) {
    const headers = { 'x-forwarded-for': `198.51.100.${quarters}` }
    await xrpc(pds, 'com.atproto.server.requestPasswordReset', { json: { email }, headers })
    await initiate(pds, did)
    await pds.runSteps()
    pds.clock.advance({ secs: 15 * 60 + 1 })
  }
}

test('strangers cannot use up the mails that the holder asks for', async () => {
  await using pds = await startPds({ ...withMasterKey, accounts: { requireSecondFactor: true } })
  const alice = await createAccount(pds, 'alice')
  await besiege(pds, alice)
  const besieged = mailsTo(pds, alice.email)
  expect(besieged).toBe(30)
  // What was not mailed does not count as a code that the holder has.
  const since = pds.clock.now() - 3600_000
  const resets = await pds.rows('mailed_code')
  expect(resets.filter((code) => code.requested_at > since)).toEqual([])
  const recoveries = await pds.rows('recovery_code')
  expect(recoveries.filter((code) => code.issued_at > since)).toEqual([])

  const { handle: identifier, password } = alice
  const signIn = (authFactorToken?: string) =>
    xrpc(pds, 'com.atproto.server.createSession', { json: { identifier, password, authFactorToken } })
  expect(await signIn()).toMatchObject({ status: 401, body: { error: 'AuthFactorTokenRequired' } })
  expect(mailsTo(pds, alice.email)).toBe(besieged + 1)
  const session = await signIn(await lastCode(pds, alice.email))
  expect(session.status).toBe(200)
  await pds.ctx.background.settled()
  await pds.runSteps()
  const before = mailsTo(pds, alice.email)
  const headers = bearer(session.body.accessJwt)
  const confirm = () => xrpc(pds, 'com.atproto.server.requestEmailConfirmation', { method: 'POST', headers })
  expect((await confirm()).status).toBe(200)
  expect(mailsTo(pds, alice.email)).toBe(before + 1)
  const token = await lastCode(pds, alice.email)
  const json = { email: alice.email, token }
  expect((await xrpc(pds, 'com.atproto.server.confirmEmail', { json, headers })).status).toBe(200)
})

test('a holder who asks for too many mails is told so', async () => {
  await using pds = await startPds()
  const alice = await createAccount(pds, 'alice')
  await causeMails(pds, alice, 9)
  for (const event of ['requestEmailConfirmation', 'requestAccountDelete'])
    for (let i = 0; i < 5; i++)
      expect((await alice.call(`com.atproto.server.${event}`, { method: 'POST' })).status).toBe(200)
  const askOperation = () => alice.call('com.atproto.identity.requestPlcOperationSignature', { method: 'POST' })
  expect((await askOperation()).status).toBe(200)
  expect(mailsTo(pds, alice.email)).toBe(20)
  const refused = await askOperation()
  expect(refused).toMatchObject({ status: 429, body: { error: 'RateLimitExceeded' } })
  // Of the bound on the address, which is used up, not of the account's own limit, which is not.
  expect(refused.headers.get('ratelimit-policy')).toBe('20;w=3600')
  expect(refused.headers.get('ratelimit-remaining')).toBe('0')
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(3000)
  expect(Number(refused.headers.get('retry-after'))).toBeLessThanOrEqual(3600)
  // Notices are withheld without an answer that could say so: the log does, and who caused them.
  await alice.call('com.atproto.server.createAppPassword', { json: { name: 'another' } })
  await pds.runSteps()
  expect(mailsTo(pds, alice.email)).toBe(20)
  const withheld = pds.log.filter(({ message }) => message.startsWith('mail withheld'))
  expect(withheld.map(({ did, detail }) => [did, detail])).toEqual([
    [alice.did, 'plc_operation'],
    [alice.did, 'appPasswordMade'],
  ])
})

test('a thief cannot silence what the replaced address is told', async () => {
  await using pds = await startPds(withMasterKey)
  const alice = await createAccount(pds, 'alice')
  await putShare(pds, alice.accessJwt, newShare())
  await pds.damage('account', { did: alice.did }, { email_confirmed_at: 1 })
  await alice.call('com.atproto.server.requestEmailUpdate', { method: 'POST' })
  const token = await lastCode(pds, alice.email)
  const changed = { email: 'thief@example.com', token }
  expect((await alice.call('com.atproto.server.updateEmail', { json: changed })).status).toBe(200)
  await pds.runSteps()
  for (const name of ['mallory', 'trudy', 'eve']) {
    const account = await createAccount(pds, name)
    const give = (email: string) => account.call('com.atproto.server.updateEmail', { json: { email } })
    expect((await give(alice.email)).status).toBe(200)
    await causeMails(pds, account, 10)
    expect((await give(`${name}@elsewhere.example.com`)).status).toBe(200)
  }
  await pds.runSteps()
  const before = mailsTo(pds, alice.email)
  const code = await newRecoveryCode(pds, { did: alice.did, email: 'thief@example.com' })
  expect((await release(pds, alice.did, code)).status).toBe(200)
  await pds.runSteps()
  const told = pds.mails.filter(({ to }) => to === alice.email).slice(before)
  expect(told.map(({ text }) => text)).toEqual([expect.stringContaining('This was the address of the account')])
})

test('what operators send is sent', async () => {
  await using pds = await startPds()
  const alice = await createAccount(pds, 'alice')
  const headers = basic('admin', ADMIN_TOKEN)
  for (let i = 0; i < 30; i++) {
    const json = { recipientDid: alice.did, senderDid: alice.did, content: `news ${i}` }
    const sent = await request(`${pds.url}/xrpc/com.atproto.admin.sendEmail`, { json, headers })
    expect(sent).toMatchObject({ status: 200, body: { sent: true } })
  }
  await pds.runSteps()
  expect(mailsTo(pds, alice.email)).toBe(30)
  // Nor does it use up what others cause.
  await causeMails(pds, alice, 10)
  expect(mailsTo(pds, alice.email)).toBe(40)
})

test('a confirmed address gets all mails', async () => {
  await using pds = await startPds()
  const alice = await createAccount(pds, 'alice')
  await pds.damage('account', { did: alice.did }, { email_confirmed_at: 1 })
  await causeMails(pds, alice, 10)
  const headers = basic('admin', ADMIN_TOKEN)
  for (let i = 0; i < 30; i++) {
    const json = { recipientDid: alice.did, senderDid: alice.did, content: `news ${i}` }
    expect((await request(`${pds.url}/xrpc/com.atproto.admin.sendEmail`, { json, headers })).status).toBe(200)
  }
  await pds.runSteps()
  expect(mailsTo(pds, alice.email)).toBe(40)
})
