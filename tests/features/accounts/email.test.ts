import { beforeEach, expect, spyOn, test } from 'bun:test'
import { createAccount, xrpc, type TestAccount } from '../../support/clients/account.ts'
import { lastCode } from '../../support/servers/mail.ts'
import { startPds } from '../../support/servers/pds.ts'
import { useWorld } from '../../support/world.ts'

let alice: TestAccount
let names = 0
const { pds } = useWorld({ config: { rateLimit: { enabled: false } } })
beforeEach(async () => {
  alice = await createAccount(pds, `user${++names}`)
})

const requestConfirmation = () => alice.call('com.atproto.server.requestEmailConfirmation', { method: 'POST' })
const confirm = (token: string, email = alice.email) =>
  alice.call('com.atproto.server.confirmEmail', { json: { email, token } })
const requestUpdate = async () => (await alice.call('com.atproto.server.requestEmailUpdate', { method: 'POST' })).body
const update = (json: object) => alice.call('com.atproto.server.updateEmail', { json })
const session = async () => (await alice.call('com.atproto.server.getSession')).body

async function confirmed(): Promise<void> {
  await requestConfirmation()
  expect((await confirm(await lastCode(pds, alice.email))).status).toBe(200)
}

const invalid = { status: 400, body: { error: 'InvalidToken', message: 'Token is invalid' } }

test('an address is confirmed with the code that was sent to it', async () => {
  expect((await requestConfirmation()).status).toBe(200)
  const mail = pds.mails.at(-1)!
  expect(mail).toMatchObject({
    to: alice.email,
    subject: 'Confirm your email address (localhost:' + new URL(pds.url).port + ')',
  })
  const code = await lastCode(pds, alice.email)
  expect(mail.subject).not.toContain(code)
  expect(await confirm(code, 'other@example.com')).toMatchObject({ status: 400, body: { error: 'InvalidEmail' } })
  expect((await confirm(` ${code.toLowerCase()} `, alice.email.toUpperCase())).status).toBe(200)
  expect((await session()).emailConfirmed).toBe(true)
  expect(await confirm(code)).toMatchObject(invalid)
})

test('a code is good for fifteen minutes, and a new one replaces it', async () => {
  await requestConfirmation()
  const first = await lastCode(pds, alice.email)
  await requestConfirmation()
  const second = await lastCode(pds, alice.email, 2)
  expect(await confirm(first)).toMatchObject(invalid)
  pds.clock.advance({ secs: 15 * 60 + 1 })
  expect(await confirm(second)).toMatchObject({
    status: 400,
    body: { error: 'ExpiredToken', message: 'Token is expired' },
  })
  expect((await session()).emailConfirmed).toBe(false)
})

test('a code dies of five wrong guesses', async () => {
  await requestConfirmation()
  const code = await lastCode(pds, alice.email)
  for (let i = 0; i < 5; i++) expect(await confirm('AAAAA-AAAAA')).toMatchObject(invalid)
  expect(await confirm(code)).toMatchObject(invalid)
})

test('a code of one account or purpose is no code of another', async () => {
  await requestConfirmation()
  const code = await lastCode(pds, alice.email)
  const email = alice.email
  alice = await createAccount(pds, `user${++names}`)
  await requestConfirmation()
  expect(await confirm(code)).toMatchObject(invalid)
  expect(await update({ email: 'new@example.com', token: code })).toMatchObject(invalid)
  expect(email).not.toBe(alice.email)
})

test('an unconfirmed address is changed at once, and the new one is not confirmed', async () => {
  expect(await requestUpdate()).toEqual({ tokenRequired: false })
  expect((await update({ email: `New-${alice.email}` })).status).toBe(200)
  expect(await session()).toMatchObject({ email: `new-${alice.email}`, emailConfirmed: false })
})

test('a confirmed address is changed with a code sent to it', async () => {
  await confirmed()
  expect(await update({ email: 'thief@example.com' })).toMatchObject({
    status: 400,
    body: { error: 'TokenRequired', message: 'confirmation token required' },
  })
  expect(await requestUpdate()).toEqual({ tokenRequired: true })
  const token = await lastCode(pds, alice.email, 2)
  await requestConfirmation()
  const other = await lastCode(pds, alice.email, 3)
  expect((await update({ email: `moved-${alice.email}`, token })).status).toBe(200)
  expect(await session()).toMatchObject({ email: `moved-${alice.email}`, emailConfirmed: false })
  expect(await confirm(other, `moved-${alice.email}`)).toMatchObject(invalid)
})

test('an address that is confirmed while it is changed is changed with a code only', async () => {
  await requestConfirmation()
  const code = await lastCode(pds, alice.email)
  const answers = await Promise.all([confirm(code), update({ email: `new-${alice.email}` })])
  expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 400])
})

test('an address that is given up while a code is asked for does not get it', async () => {
  const { db } = pds.ctx
  const get = db.get.bind(db)
  const reads = spyOn(db, 'get')
  reads.mockImplementation(async <Row>(query: Parameters<typeof get>[0]): Promise<Row | null> => {
    const row = await get<Row>(query)
    if ((row as { email?: unknown } | null)?.email !== alice.email) return row
    reads.mockRestore()
    expect((await update({ email: `left-${alice.email}` })).status).toBe(200)
    return row
  })
  await xrpc(pds, 'com.atproto.server.requestPasswordReset', { json: { email: alice.email } })
  await lastCode(pds, `left-${alice.email}`)
  expect(pds.mails.some(({ to, subject }) => to === alice.email && subject.startsWith('Password reset'))).toBe(false)
})

test('an address that is none, or another account has, is refused', async () => {
  const bob = await createAccount(pds, `user${++names}`)
  for (const email of ['nobody', 'a@b', 'x@example.com\nBcc: y@example.com', 'x@mailinator.com']) {
    expect(await update({ email })).toMatchObject({
      status: 400,
      body: { message: 'This email address is not supported, please use a different email.' },
    })
  }
  expect(await update({ email: bob.email })).toMatchObject({
    status: 400,
    body: { error: 'InvalidRequest', message: 'This email address is already in use, please use a different email.' },
  })
})

test('mail that cannot be sent is said to be so', async () => {
  await using broken = await startPds(
    {},
    { mailer: { check: async () => null, send: () => Promise.reject(new Error('no route to host')) } },
  )
  const bob = await createAccount(broken, 'bob')
  expect(await bob.call('com.atproto.server.requestEmailConfirmation', { method: 'POST' })).toMatchObject({
    status: 503,
    body: { error: 'ServiceUnavailable' },
  })
})
