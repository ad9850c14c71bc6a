/** What happens to accounts, as the log tells the operator and as mails tell the holder. */
import { expect, setDefaultTimeout, test } from 'bun:test'
import { createAccount, PASSWORD, xrpc, type TestAccount } from '../../support/clients/account.ts'
import { basic, bearer, request } from '../../support/clients/http.ts'
import { lastCode, noticesTo } from '../../support/servers/mail.ts'
import { ADMIN_TOKEN, startPds, type TestPds } from '../../support/servers/pds.ts'
import { sovereignAccount } from '../../support/clients/wallet.ts'
import { beforeCharge } from '../../support/interruptions.ts'
import { atOneNode } from '../../support/turns.ts'

setDefaultTimeout(60_000)

const FIREFOX = 'Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0'
const operator = basic('admin', ADMIN_TOKEN)
const lines = (pds: TestPds, did?: string) =>
  pds.log
    .filter((line) => line.level === 'info' && (did === undefined || line.did === did))
    .map(({ message }) => message)
const signIn = (pds: TestPds, identifier: string, password = PASSWORD, headers: Record<string, string> = {}) =>
  xrpc(pds, 'com.atproto.server.createSession', { json: { identifier, password }, headers })
const from = (network: string, agent = 'curl/8') => ({ 'x-forwarded-for': `${network}.7`, 'user-agent': agent })
const onPage = (pds: TestPds, path: string, fields: Record<string, string>, headers: Record<string, string> = {}) =>
  request(`${pds.url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded', 'user-agent': FIREFOX, ...headers },
    body: new URLSearchParams(fields).toString(),
  })

/** Of somebody who has shown that the address is theirs. */
async function joined(pds: TestPds, name: string): Promise<TestAccount> {
  const account = await createAccount(pds, name)
  await account.call('com.atproto.server.requestEmailConfirmation', { method: 'POST' })
  await account.call('com.atproto.server.confirmEmail', {
    json: { email: account.email, token: await lastCode(pds, account.email) },
  })
  return account
}

test('whatever changes an account is a line with its DID and the id of the request, and mail to its holder', async () => {
  await using pds = await startPds({ contact: { email: 'help@pds.test' } })
  const ann = await createAccount(pds, 'ann')
  await ann.call('com.atproto.identity.updateHandle', { json: { handle: 'anna.test' } })
  const made = await ann.call('com.atproto.server.createAppPassword', { json: { name: 'my\nreader' } })
  await signIn(pds, ann.did, made.body.password)
  await ann.call('com.atproto.server.revokeAppPassword', { json: { name: 'my\nreader' } })
  await ann.call('com.atproto.server.requestAccountDelete', { method: 'POST' })
  await ann.call('com.atproto.server.deactivateAccount', { json: { deleteAfter: '2100-01-01T00:00:00Z' } })
  await ann.call('com.atproto.server.activateAccount', { method: 'POST' })
  await ann.call('com.atproto.server.updateEmail', { json: { email: 'moved@example.com' } })
  await xrpc(pds, 'com.atproto.server.requestPasswordReset', { json: { email: 'moved@example.com' } })
  await xrpc(pds, 'com.atproto.server.resetPassword', {
    json: { token: await lastCode(pds, 'moved@example.com'), password: 'another-password' },
  })
  expect(lines(pds, ann.did)).toEqual([
    'account created',
    'handle changed',
    'app password created',
    'signed in',
    'app password revoked',
    'deletion requested',
    'account deactivated and scheduled for deletion',
    'account activated',
    'email address changed',
    'password reset',
  ])
  const answered = new Set(
    pds.log.filter(({ message }) => message === 'request handled').map(({ requestId }) => requestId),
  )
  expect(
    pds.log
      .filter(({ did, level }) => did === ann.did && level === 'info')
      .every(({ requestId }) => answered.has(requestId)),
  ).toBe(true)

  const subjects = async (to: string) => (await noticesTo(pds, to)).map(({ subject }) => subject.replace(/ \(.*/, ''))
  expect((await subjects(ann.email)).toSorted()).toEqual([
    'An app password was created',
    'Your account is scheduled for deletion',
    'Your email address was changed',
    'Your handle was changed',
  ])
  expect(await subjects('moved@example.com')).toEqual(['Your password was reset'])
  const notices = await noticesTo(pds, ann.email)
  const [handle, app] = ['Your handle', 'An app password'].map((start) =>
    notices.find(({ subject }) => subject.startsWith(start)),
  )
  expect(handle!.text).toContain('is now anna.test')
  for (const part of [
    /^When: \d+ \w+ \d{4} at \d\d:\d\d UTC$/m,
    `${pds.url}/account/reset-password`,
    `${pds.url}/account `,
    'help@pds.test',
  ])
    expect(handle!.text).toMatch(part)
  expect(app!.text).toContain('Your account has a new app password. ')
  // The mail with the code says who asks, when, and where to look.
  expect(pds.mails.find(({ subject }) => subject.startsWith('Account deletion'))!.text).toMatch(
    /^When: [^]*\/account$/m,
  )
})

test('what an operator does is mailed as such, but for a change of address, and is a line with its actor', async () => {
  await using pds = await startPds()
  const ann = await createAccount(pds, 'ann')
  await xrpc(pds, 'com.atproto.admin.updateAccountPassword', {
    json: { did: ann.did, password: 'given-by-the-operator' },
    headers: operator,
  })
  await xrpc(pds, 'com.atproto.admin.updateAccountEmail', {
    json: { account: ann.did, email: 'new@example.com' },
    headers: operator,
  })
  // The address that an operator replaces may be in wrong hands: it hears nothing.
  expect(await noticesTo(pds, ann.email)).toMatchObject([
    {
      subject: expect.stringContaining('Your password was changed'),
      text: expect.stringContaining('By: the operator of this server\n\n'),
    },
  ])
  expect(await noticesTo(pds, 'new@example.com')).toEqual([])
  expect(lines(pds, ann.did)).toContain('email address changed')
  expect(
    pds.log.filter(({ message }) => message === 'password changed' || message === 'operator action'),
  ).toMatchObject([
    { subject: ann.did, actor: 'master-token', action: 'password_updated' },
    { did: ann.did, actor: 'master-token' },
    { subject: ann.did, actor: 'master-token', action: 'email_updated' },
  ])
  await xrpc(pds, 'com.atproto.admin.deleteAccount', { json: { did: ann.did }, headers: operator })
  expect(lines(pds, ann.did).at(-1)).toBe('account deleted')
})

test('whose address it is reads the name of an app password in one line', async () => {
  await using pds = await startPds()
  const ann = await joined(pds, 'ann')
  await ann.call('com.atproto.server.createAppPassword', { json: { name: 'my\nreader' } })
  expect((await noticesTo(pds, ann.email))[0]!.text).toContain(
    'Your account has a new app password, called "my reader". ',
  )
})

test('mail about a sign-in comes from a new place and not from a known one', async () => {
  await using pds = await startPds()
  const ann = await joined(pds, 'ann')
  const subjects = async () =>
    (await noticesTo(pds, ann.email)).map(({ text }) => /With: (.*)\nFrom: (.*)/.exec(text)?.slice(1))
  for (let i = 0; i < 3; i++) await signIn(pds, ann.handle)
  expect(await subjects()).toEqual([])
  await signIn(pds, ann.handle, PASSWORD, from('192.0.2'))
  await signIn(pds, ann.handle, PASSWORD, { ...from('192.0.2'), 'x-forwarded-for': '192.0.2.250' })
  expect(await subjects()).toEqual([['curl', 'the network 192.0.2.0/24']])
  await signIn(pds, ann.handle, PASSWORD, from('192.0.2', FIREFOX))
  await signIn(pds, ann.handle, PASSWORD, from('198.51.100'))
  expect(await subjects()).toHaveLength(3)
})

test('there are three such mails a day, and what was left out is told the day after', async () => {
  await using pds = await startPds()
  using _ = atOneNode(pds, 'the last request of a limit is counted, and each node may let one more through')
  const ann = await createAccount(pds, 'ann')
  for (const i of [1, 2, 3, 4]) {
    await signIn(pds, ann.handle, PASSWORD, from(`203.0.${i}`))
    await pds.ctx.background.settled()
  }
  expect(await noticesTo(pds, ann.email)).toHaveLength(3)
  pds.clock.advance({ days: 1 })
  for (const i of [1, 2, 3, 4]) await signIn(pds, ann.handle, PASSWORD, from(`203.0.${i}`))
  expect((await noticesTo(pds, ann.email)).at(-1)!.text).toContain('203.0.4.0/24')
  expect(await noticesTo(pds, ann.email)).toHaveLength(4)
})

test('mail about one kind of event is bounded, and leaves room for that of another', async () => {
  await using pds = await startPds({}, { alone: 'each node sends mails, and may let one more through' })
  const ann = await createAccount(pds, 'ann')
  for (let i = 0; i < 12; i++)
    expect((await ann.call('com.atproto.server.createAppPassword', { json: { name: `app ${i}` } })).status).toBe(200)
  expect(await noticesTo(pds, ann.email)).toHaveLength(10)
  await ann.call('com.atproto.identity.updateHandle', { json: { handle: 'anna.test' } })
  expect((await noticesTo(pds, ann.email)).at(-1)!.subject).toStartWith('Your handle was changed')
})

test('many sign-ins at a time from a new place are one mail', async () => {
  await using pds = await startPds()
  const ann = await createAccount(pds, 'ann')
  await Promise.all(Array.from({ length: 5 }, () => signIn(pds, ann.handle, PASSWORD, from('203.0.113'))))
  expect(await noticesTo(pds, ann.email)).toHaveLength(1)
})

test('of a sign-in that is noted after its account was deleted, nothing stays', async () => {
  await using pds = await startPds({}, { alone: 'the test replaces a part of the server' })
  const ann = await createAccount(pds, 'ann')
  using _ = beforeCharge(pds, 'signInNotice', () =>
    xrpc(pds, 'com.atproto.admin.deleteAccount', { json: { did: ann.did }, headers: operator }),
  )
  expect((await signIn(pds, ann.handle, PASSWORD, from('203.0.113'))).status).toBe(200)
  await pds.ctx.background.settled()
  expect(await pds.count('account', { did: ann.did })).toBe(0)
  expect(await pds.count('known_place', { did: ann.did })).toBe(0)
})

test.each(['password reset', 'all access to the account ended'])(
  'a sign-in that is noted after this is told, and its place is not known: %s',
  async (ending) => {
    await using pds = await startPds({}, { alone: 'the test replaces a part of the server' })
    const ann = await createAccount(pds, 'ann')
    await xrpc(pds, 'com.atproto.server.requestPasswordReset', { json: { email: ann.email } })
    const token = await lastCode(pds, ann.email)
    using _ = beforeCharge(pds, 'signInNotice', () =>
      ending === 'password reset'
        ? xrpc(pds, 'com.atproto.server.resetPassword', { json: { token, password: 'another-password' } })
        : request(`${pds.url}/v1/admin/accounts/${ann.did}/revoke-credentials`, { method: 'POST', headers: operator }),
    )
    expect((await signIn(pds, ann.handle, PASSWORD, from('203.0.113'))).status).toBe(200)
    const told = await noticesTo(pds, ann.email)
    expect(lines(pds, ann.did)).toContain(ending)
    expect(told.filter(({ text }) => text.includes('203.0.113.0/24'))).toHaveLength(1)
    expect(await pds.count('known_place', { did: ann.did })).toBe(0)
  },
)

test('after a password was reset no place is known', async () => {
  await using pds = await startPds()
  const ann = await createAccount(pds, 'ann')
  await xrpc(pds, 'com.atproto.server.requestPasswordReset', { json: { email: ann.email } })
  await xrpc(pds, 'com.atproto.server.resetPassword', {
    json: { token: await lastCode(pds, ann.email), password: 'another-password' },
  })
  await signIn(pds, ann.handle, 'another-password')
  // The two mails are sent side by side.
  expect((await noticesTo(pds, ann.email)).map(({ subject }) => subject.replace(/ \(.*/, '')).toSorted()).toEqual([
    'New sign-in to your account',
    'Your password was reset',
  ])
})

test('a browser that was signed in is known wherever it is; another one is not', async () => {
  await using pds = await startPds()
  const ann = await createAccount(pds, 'ann')
  const fields = { identifier: ann.handle, password: PASSWORD, remember: 'yes' }
  const first = await onPage(pds, '/account/sign-in', fields, { 'x-forwarded-for': '192.0.2.1' })
  const cookie = first.headers.get('set-cookie')!.split(';')[0]!
  expect(await noticesTo(pds, ann.email)).toHaveLength(1)
  const again = await onPage(pds, '/account/sign-in', fields, { cookie, 'x-forwarded-for': '198.51.100.1' })
  expect(again.status).toBe(303)
  expect(await noticesTo(pds, ann.email)).toHaveLength(1)
  await onPage(pds, '/account/sign-in', fields, { 'x-forwarded-for': '203.0.113.1' })
  const mails = await noticesTo(pds, ann.email)
  expect(mails).toHaveLength(2)
  expect(mails[1]!.text).toContain('With: Firefox on Linux\nFrom: the network 203.0.113.0/24')
  expect(JSON.stringify(pds.mails)).not.toContain('203.0.113.1')
})

test('nothing that a stranger has written is mailed to an address that nobody has confirmed, nor with a code that anybody asks for', async () => {
  await using pds = await startPds()
  const spam = { origin: 'https://win.evil.example', 'user-agent': 'Visit evil.example now/1' }
  const headers = { ...spam, 'x-forwarded-for': '192.0.2.7' }
  const victim = await createAccount(pds, 'mallory')
  await xrpc(pds, 'com.atproto.server.createAppPassword', {
    json: { name: 'You have won: evil.example' },
    headers: { ...headers, ...bearer(victim.accessJwt) },
  })
  await signIn(pds, victim.handle, PASSWORD, headers)
  await victim.call('com.atproto.server.requestEmailConfirmation', { method: 'POST', headers: spam })
  const owner = await joined(pds, 'olga')
  await xrpc(pds, 'com.atproto.server.requestPasswordReset', { json: { email: owner.email }, headers })
  await pds.ctx.background.settled()
  await pds.runSteps()
  expect(pds.mails.map(({ subject }) => subject.replace(/ \(.*/, '')).toSorted()).toEqual([
    'An app password was created',
    'Confirm your email address',
    'Confirm your email address',
    'New sign-in to your account',
    'Password reset requested',
  ])
  for (const { text } of pds.mails) expect(text).not.toContain('evil')
})

test('a failed sign-in is a line without what was typed, and a flood of them is not a flood of lines', async () => {
  await using pds = await startPds({ rateLimit: { enabled: false } })
  using _ = atOneNode(pds, 'each node counts for itself')
  const ann = await createAccount(pds, 'ann')
  await signIn(pds, ann.email, 'wrong-secret', from('192.0.2'))
  await signIn(pds, 'nobody@example.com', 'wrong-secret', from('192.0.2'))
  await onPage(
    pds,
    '/account/sign-in',
    { identifier: ann.handle, password: 'wrong-secret' },
    { 'x-forwarded-for': '198.51.100.1' },
  )
  const failed = () => pds.log.filter(({ message }) => message === 'sign-in failed')
  expect(failed()).toMatchObject([
    { reason: 'wrong password', did: ann.did, ip: '192.0.2.7' },
    { reason: 'no such account' },
    { reason: 'wrong password', did: ann.did, ip: '198.51.100.1' },
  ])
  expect(failed()[1]).not.toHaveProperty('did')
  expect(JSON.stringify(pds.log)).not.toMatch(/wrong-secret|nobody@|ann@/)
  for (let i = 0; i < 40; i++) await signIn(pds, ann.did, 'wrong-secret', from('192.0.2'))
  expect(failed()).toHaveLength(11)
  pds.clock.advance({ secs: 61 })
  await signIn(pds, 'nobody.test', 'wrong-secret', from('192.0.2'))
  expect(failed().at(-1)).toMatchObject({ omitted: 32 })
})

test('a wrong credential of an operator is a line without it', async () => {
  await using pds = await startPds()
  using _ = atOneNode(pds, 'each node counts for itself')
  for (let i = 0; i < 12; i++)
    await xrpc(pds, 'com.atproto.server.createInviteCode', {
      json: { useCount: 1 },
      headers: { ...basic('admin', 'wrong-secret'), 'x-forwarded-for': '192.0.2.7' },
    })
  const refused = pds.log.filter(({ message }) => message === 'operator credential refused')
  expect(refused).toHaveLength(10)
  expect(refused[0]).toMatchObject({ level: 'warn', ip: '192.0.2.7', requestId: expect.any(String) })
  expect(JSON.stringify(pds.log)).not.toContain('wrong-secret')
})

test('what is told by mail is written with what it tells of: a server that ends in between tells it when it starts again', async () => {
  await using pds = await startPds()
  const ann = await createAccount(pds, 'ann')
  await pds.ctx.steps.stop()
  expect(await ann.call('com.atproto.server.createAppPassword', { json: { name: 'reader' } })).toMatchObject({
    status: 200,
  })
  await pds.restart()
  await pds.runSteps()
  expect(await noticesTo(pds, ann.email)).toMatchObject([
    { subject: expect.stringContaining('An app password was created') },
  ])
})

test('mail that cannot be sent fails nothing, is a line, and waits', async () => {
  await using pds = await startPds(
    {},
    { mailer: { check: async () => null, send: () => Promise.reject(new Error('no route to host')) } },
  )
  const ann = await createAccount(pds, 'ann')
  expect(await ann.call('com.atproto.server.createAppPassword', { json: { name: 'reader' } })).toMatchObject({
    status: 200,
  })
  await pds.ctx.background.settled()
  await pds.runSteps()
  expect(pds.log.find(({ message }) => message === 'step failed')).toMatchObject({
    level: 'warn',
    stepKind: 'mail',
    tries: 1,
    error: expect.objectContaining({ message: 'no route to host' }),
  })
  expect(await pds.ctx.steps.summaries()).toContainEqual(expect.objectContaining({ kind: 'mail', waiting: 1 }))
})

test('a server that stops waits for mail that is on its way, sends the rest when it starts again, and keeps a bounded number of places', async () => {
  const { promise: taken, resolve: take } = Promise.withResolvers<void>()
  const sent: string[] = []
  await using pds = await startPds(
    { rateLimit: { enabled: false } },
    {
      mailer: {
        check: async () => null,
        async send({ subject }) {
          await taken
          sent.push(subject)
        },
      },
    },
  )
  const ann = await createAccount(pds, 'ann')
  for (let i = 0; i < 105; i++) await signIn(pds, ann.handle, PASSWORD, from(`10.9.${i}`.replace('10.9', '203.9')))
  expect(await pds.count('known_place', { did: ann.did })).toBeLessThanOrEqual(101)
  const stopped = pds.stop()
  take()
  await stopped
  expect(sent.length).toBeGreaterThan(0)
  await pds.restart()
  await pds.runSteps()
  expect(sent).toHaveLength(105)
})

test('mails to somebody without a password advise what helps them, and no new password', async () => {
  await using pds = await startPds({ rateLimit: { enabled: false }, accounts: { passwordOptional: true } })
  const kim = await sovereignAccount(pds, 'kim', { password: undefined })
  await kim.call('com.atproto.identity.updateHandle', { json: { handle: 'kimberly.test' } })
  await kim.call('com.atproto.server.requestAccountDelete', { method: 'POST' })
  await createAccount(pds, 'lee', { email: kim.email }).catch(() => undefined)
  await noticesTo(pds, kim.email)
  const texts = pds.mails.filter(({ to }) => to === kim.email).map(({ text }) => text)
  expect(texts.some((text) => text.includes('replace that key in your wallet'))).toBe(true)
  expect(texts.some((text) => text.includes(`end every session that you do not recognise at ${pds.url}/account`))).toBe(
    true,
  )
  expect(texts.length).toBeGreaterThan(1)
  for (const text of texts) expect(text).not.toContain('password')
})
