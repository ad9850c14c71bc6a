/** What a stranger learns of an address that has an account, and what its holder does. */
import { expect, test } from 'bun:test'
import { createAccount, PASSWORD, xrpc } from '../../support/clients/account.ts'
import { basic } from '../../support/clients/http.ts'
import { ADMIN_TOKEN, startPds, type TestPds } from '../../support/servers/pds.ts'
import { setTakedown } from '../../system/conformance/callers.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'
import { beforeCharge } from '../../support/interruptions.ts'
import { until } from '../../support/until.ts'
import { atOneNode } from '../../support/turns.ts'

const { pds } = useWorld({ config: { rateLimit: { enabled: false } } })
const alice = setUp(() => createAccount(pds, 'alice'))

const operator = basic('admin', ADMIN_TOKEN)
const FREE = 'nobody@example.com'
const wanted = (email: string, more: object = {}) => ({ handle: 'mallory.test', email, password: PASSWORD, ...more })
const signUp = (json: object, on: Pick<TestPds, 'url'> = pds) => xrpc(on, 'com.atproto.server.createAccount', { json })
const mailsTo = (address: string, on = pds) => on.mails.filter(({ to }) => to === address)

const mailed = (count: number, address: string, on = pds): Promise<void> =>
  until(() => mailsTo(address, on).length >= count)

test('an address that is taken is refused word for word as one that is not accepted, limits told included', async () => {
  await using limited = await startPds()
  const { email } = await createAccount(limited, 'alice')
  const [taken, thrownAway] = [
    await signUp(wanted(email.toUpperCase()), limited),
    await signUp(wanted('x@mailinator.com'), limited),
  ]
  expect({ status: taken.status, body: taken.body }).toEqual({ status: thrownAway.status, body: thrownAway.body })
  const limits = ({ headers }: typeof taken) =>
    ['ratelimit-limit', 'ratelimit-policy', 'retry-after'].map((name) => headers.get(name))
  expect(limits(taken)).toEqual(limits(thrownAway))
})

/** Requests that make no account whatever the address is: they must not tell whether it is free. */
const fruitless: Record<string, object> = {
  'without the password': { password: undefined },
  'with a handle that is taken': { handle: 'alice.test' },
  'for a DID that was not proved': { did: 'did:plc:ewvi7nxzyoun6zhxrhs64oiz' },
  'with a recovery key that is none': { recoveryKey: 'did:key:nonsense' },
}

for (const [how, more] of Object.entries(fruitless)) {
  test(`${how}, nothing is learnt of an address, and nobody is told`, async () => {
    const before = pds.mails.length
    const [taken, free] = [await signUp(wanted(alice.email, more)), await signUp(wanted(FREE, more))]
    expect(taken.status).not.toBe(200)
    expect({ status: taken.status, body: taken.body }).toEqual({ status: free.status, body: free.body })
    expect(pds.mails.length).toBe(before)
  })
}

test('where invites are needed, nothing is learnt of an address without one', async () => {
  await using closed = await startPds({ inviteCodeRequired: true })
  const { body } = await xrpc(closed, 'com.atproto.server.createInviteCode', {
    json: { useCount: 1 },
    headers: operator,
  })
  await createAccount(closed, 'alice', { inviteCode: body.code })
  for (const more of [{}, { inviteCode: 'made-up' }, { inviteCode: body.code }]) {
    const [taken, free] = [
      await signUp(wanted('alice@example.com', more), closed),
      await signUp(wanted(FREE, more), closed),
    ]
    expect(taken.body.error).toBe('InvalidInviteCode')
    expect(taken.body).toEqual(free.body)
  }
})

test('whoever has the address is told, whatever the state of the account, and only so often', async () => {
  await using limited = await startPds({ rateLimit: { createAccountPer5min: 0 } })
  const { email, did, handle } = await createAccount(limited, 'bob')
  await setTakedown(limited, did, true)
  await signUp(wanted(email), limited)
  await mailed(1, email, limited)
  expect(mailsTo(email, limited)[0]).toMatchObject({
    subject: expect.stringContaining('You already have an account'),
    text: expect.stringContaining(handle),
  })
  for (let hour = 0; hour < 24; hour++) {
    await signUp(wanted(email), limited)
    limited.clock.advance({ secs: 3600 })
  }
  expect(mailsTo(email, limited).length).toBeLessThanOrEqual(16)
})

test('whoever had the address is told nothing once their account is deleted', async () => {
  await using other = await startPds({}, { alone: 'the test replaces a part of the server' })
  const { email, did } = await createAccount(other, 'bob')
  using _ = beforeCharge(other, 'requestMail', () =>
    xrpc(other, 'com.atproto.admin.deleteAccount', { json: { did }, headers: operator }),
  )
  expect((await signUp(wanted(email), other)).status).toBe(400)
  await other.ctx.background.settled()
  await other.ctx.steps.workOff()
  expect(await other.count('account', { did })).toBe(0)
  expect(mailsTo(email, other)).toEqual([])
})

test('a network address is refused five of them an hour, then it waits whatever it asks for', async () => {
  await using limited = await startPds()
  const { email } = await createAccount(limited, 'carol')
  for (let count = 0; count < 5; count++) expect((await signUp(wanted(email), limited)).status).toBe(400)
  const [taken, free] = [await signUp(wanted(email), limited), await signUp(wanted(FREE), limited)]
  expect([taken.status, free.status]).toEqual([429, 429])
  expect(taken.body).toEqual(free.body)
  limited.clock.advance({ secs: 3601 })
  expect((await signUp(wanted(FREE), limited)).status).toBe(200)
})

test('an account that asks for addresses of others is refused as often as a stranger, and their holders are told', async () => {
  await using limited = await startPds()
  using _ = atOneNode(limited, 'the last request of a limit is counted, and each node may let one more through')
  const { email } = await createAccount(limited, 'erin')
  const mallory = await createAccount(limited, 'mallory')
  const take = (address: string) => mallory.call('com.atproto.server.updateEmail', { json: { email: address } })
  for (let count = 0; count < 5; count++)
    expect(await take(email)).toMatchObject({
      status: 400,
      body: { message: expect.stringContaining('already in use') },
    })
  expect([
    (await take(email)).status,
    (await take(FREE)).status,
    (await signUp(wanted(email, { handle: 'more.test' }), limited)).status,
  ]).toEqual([429, 429, 429])
  // Mails that wait for one address become one.
  await mailed(1, email, limited)
  expect(mailsTo(email, limited).length).toBeLessThanOrEqual(5)
})

test('of many at once, no more are answered', async () => {
  await using limited = await startPds()
  using _ = atOneNode(limited, 'the last request of a limit is counted, and each node may let one more through')
  const holders = await Promise.all(Array.from({ length: 12 }, (_, index) => createAccount(limited, `holder-${index}`)))
  const asking = await createAccount(limited, 'mallory')
  const bySignUp = holders
    .slice(0, 6)
    .map(({ email }, index) => signUp(wanted(email, { handle: `mallory-${index}.test` }), limited))
  const byChange = holders
    .slice(6)
    .map(({ email }) => asking.call('com.atproto.server.updateEmail', { json: { email } }))
  const answers = await Promise.all([...bySignUp, ...byChange])
  expect(answers.map(({ status }) => status).toSorted()).toEqual([
    ...Array<number>(5).fill(400),
    ...Array<number>(7).fill(429),
  ])
})

test('the page says the same, and sends the same mail', async () => {
  await using own = await startPds({ rateLimit: { enabled: false } })
  const { email } = await createAccount(own, 'dora')
  const shown = async (address: string) => {
    const response = await fetch(`${own.url}/account/sign-up`, {
      method: 'POST',
      headers: { origin: own.url, 'sec-fetch-site': 'same-origin' },
      body: new URLSearchParams({ handle: 'mallory', email: address, password: PASSWORD }),
    })
    return (await response.text()).replaceAll(address, 'ADDRESS')
  }
  const [taken, thrownAway] = [await shown(email), await shown('x@mailinator.com')]
  expect(taken).toContain('This email address cannot be used')
  expect(withoutNonces(taken)).toBe(withoutNonces(thrownAway))
  await mailed(1, email, own)
})

/** What is made anew for every page. */
const withoutNonces = (page: string) =>
  page.replaceAll(/name="proof"[^>]*>/g, '').replaceAll(/nonce-?=?"?[\w+/=-]+/g, '')
