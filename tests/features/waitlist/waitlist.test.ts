import { expect, test } from 'bun:test'
import { createAccount, xrpc } from '../../support/clients/account.ts'
import { basic, bearer, request } from '../../support/clients/http.ts'
import { lastCode } from '../../support/servers/mail.ts'
import { ADMIN_TOKEN, startPds } from '../../support/servers/pds.ts'
import { useWorld } from '../../support/world.ts'

const { pds } = useWorld({ config: { waitlist: { enabled: true } } })

const join = (json: unknown) => request(`${pds.url}/waitlist`, { json })
const list = async (query = '') =>
  (await request(`${pds.url}/v1/admin/waitlist${query}`, { headers: bearer(ADMIN_TOKEN) })).body

test('signing up twice answers the same bytes and changes nothing', async () => {
  const first = await join({ email: ' Ann@Example.org ', handle: '@Ann.test' })
  const second = await join({ email: 'ann@example.org', handle: 'other.test' })
  expect(first).toMatchObject({ status: 200, body: { status: 'ok' } })
  expect(first.headers.get('access-control-allow-origin')).toBe('*')
  expect({ ...second, headers: null }).toEqual({ ...first, headers: null })
  expect(await list()).toMatchObject({ total: 1, signups: [{ email: 'ann@example.org', handle: 'ann.test' }] })
})

test('a blank handle is none, a wrong one is refused', async () => {
  expect(await join({ email: 'bob@example.org', handle: ' ' })).toMatchObject({ status: 200 })
  expect(await join({ email: 'eve@example.org', handle: 'no handle' })).toMatchObject({
    status: 400,
    body: { error: { code: 'INVALID_HANDLE' } },
  })
})

test.each(['', 'a', '@b', 'a@', 'a@b@c', 'a b@c.d', 'a\u0000@b.c', 'a@b>,<c.d', '"a"@b.c', `${'x'.repeat(320)}@y.z`])(
  '%p is no address',
  async (email) => {
    expect(await join({ email })).toMatchObject({ status: 400, body: { error: { code: 'InvalidRequest' } } })
  },
)

test('bodies of the wrong kind are told apart', async () => {
  expect(await join({})).toMatchObject({ status: 422 })
  expect(
    await request(`${pds.url}/waitlist`, {
      method: 'POST',
      body: 'email=a',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    }),
  ).toMatchObject({ status: 415 })
  expect(
    await request(`${pds.url}/waitlist`, {
      method: 'POST',
      body: '{',
      headers: { 'content-type': 'application/json' },
    }),
  ).toMatchObject({ status: 400 })
})

test('the list is for operators, newest first, in pages', async () => {
  expect(await request(`${pds.url}/v1/admin/waitlist`)).toMatchObject({ status: 401 })
  const page = await list('?limit=1')
  expect(page.signups[0].email).toBe('bob@example.org')
  expect((await list(`?limit=1&cursor=${page.cursor}`)).signups[0].email).toBe('ann@example.org')
})

test('the budget of an address is bounded, and told', async () => {
  await using other = await startPds({ waitlist: { enabled: true } }, { alone: 'each node may let one more through' })
  const answers = []
  for (let i = 0; i < 31; i++)
    answers.push(await request(`${other.url}/waitlist`, { json: { email: `p${i}@example.org` } }))
  expect(answers[29]!.status).toBe(200)
  expect(answers[30]).toMatchObject({ status: 429, body: { error: { code: 'RATE_LIMITED' } } })
  expect(Number(answers[30]!.headers.get('retry-after'))).toBeGreaterThan(0)
})

test('where it is off there is no such endpoint, but operators still see the list', async () => {
  await pds.restart({ waitlist: { enabled: false } })
  expect(await join({ email: 'late@example.org' })).toMatchObject({
    status: 404,
    body: { error: { code: 'NOT_FOUND' } },
  })
  expect(await list()).toMatchObject({ total: 2 })
})

test('an account that is deleted takes its address off the list, if that is confirmed', async () => {
  await using other = await startPds({ waitlist: { enabled: true } })
  const [ida, otto] = [await createAccount(other, 'ida'), await createAccount(other, 'otto')]
  for (const { email } of [ida, otto]) await request(`${other.url}/waitlist`, { json: { email } })
  await ida.call('com.atproto.server.requestEmailConfirmation', { method: 'POST' })
  const token = await lastCode(other, ida.email)
  expect((await ida.call('com.atproto.server.confirmEmail', { json: { email: ida.email, token } })).status).toBe(200)
  for (const { did } of [ida, otto])
    expect(
      (await xrpc(other, 'com.atproto.admin.deleteAccount', { json: { did }, headers: basic('admin', ADMIN_TOKEN) }))
        .status,
    ).toBe(200)
  const { body } = await request(`${other.url}/v1/admin/waitlist`, { headers: bearer(ADMIN_TOKEN) })
  expect(body.signups.map(({ email }: { email: string }) => email)).toEqual([otto.email])
})

test('an operator invites a person who waits, once, or takes the address off the list', async () => {
  await using other = await startPds({ waitlist: { enabled: true }, inviteCodeRequired: true })
  for (const email of ['ina@example.org', 'ralf@example.org'])
    await request(`${other.url}/waitlist`, { json: { email } })
  const act = (name: string, email: string, token = ADMIN_TOKEN) =>
    request(`${other.url}/v1/admin/waitlist/${name}`, { json: { email }, headers: bearer(token) })
  const invited = await Promise.all([act('invite', 'Ina@Example.org'), act('invite', 'ina@example.org')])
  expect(invited.map(({ status }) => status).toSorted()).toEqual([200, 404])
  await other.runSteps()
  const [mail, ...more] = other.mails
  expect([mail!.to, more]).toEqual(['ina@example.org', []])
  const [, inviteCode = ''] = /is:\n\n(\S+)\n\nSign up at \S+\/account\/sign-up\./.exec(mail!.text) ?? []
  const ina = { handle: 'ina.test', email: 'ina@example.org', password: 'a long password', inviteCode }
  const create = `${other.url}/xrpc/com.atproto.server.createAccount`
  expect((await request(create, { json: ina })).status).toBe(200)
  expect((await request(create, { json: { ...ina, handle: 'second.test', email: 'b@example.org' } })).status).toBe(400)

  expect((await act('remove', 'ralf@example.org', 'wrong')).status).toBe(401)
  expect((await act('remove', 'ralf@example.org')).status).toBe(200)
  expect((await act('remove', 'ralf@example.org')).status).toBe(404)
  const { body } = await request(`${other.url}/v1/admin/waitlist`, { headers: bearer(ADMIN_TOKEN) })
  expect(body.total).toBe(0)
  const { events } = (await request(`${other.url}/v1/admin/audit?limit=2`, { headers: bearer(ADMIN_TOKEN) })).body
  expect(events.map(({ action }: { action: string }) => action)).toEqual(['waitlist_removed', 'waitlist_invited'])
  expect(JSON.stringify(events)).not.toContain('example.org')
})

test('one network adds a hundred entries in a day at most, and leaves room for others', async () => {
  const config = { waitlist: { enabled: true }, rateLimit: { waitlistPer5min: 0 } }
  await using open = await startPds(config, { alone: 'each node may let one more through' })
  const from = (address: string, count: number) =>
    Promise.all(
      Array.from({ length: count }, (_, i) =>
        request(`${open.url}/waitlist`, {
          json: { email: `${i}@${address}.example` },
          headers: { 'x-forwarded-for': address },
        }),
      ),
    )
  const statuses = (await from('203.0.113.7', 120)).map(({ status }) => status)
  expect(statuses.filter((status) => status === 200)).toHaveLength(100)
  expect(statuses.filter((status) => status === 429)).toHaveLength(20)
  expect((await from('198.51.100.9', 1))[0]!.status).toBe(200)
  open.clock.advance({ days: 1 })
  expect((await from('203.0.113.7', 1))[0]!.status).toBe(200)
})
