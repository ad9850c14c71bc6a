/** Mail to unconfirmed addresses, which may be those of strangers. */
import { expect, test } from 'bun:test'
import { createAccount, type TestAccount } from '../../support/clients/account.ts'
import { basic, request } from '../../support/clients/http.ts'
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
    expect((await give(`${name}@elsewhere.example.com`)).status).toBe(200)
  }
  await pds.runSteps()
  expect(mailsTo(pds, victim)).toBeLessThan(25)
  // Later it gets some again, and what the account holders themselves gave does not count.
  const account = await createAccount(pds, 'five')
  await causeMails(pds, account, 10)
  expect(mailsTo(pds, account.email)).toBe(10)
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
