import { expect, test } from 'bun:test'
import { bearer, request } from '../../support/clients/http.ts'
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

test.each(['', 'a', '@b', 'a@', 'a@b@c', 'a b@c.d', 'a\u0000@b.c', `${'x'.repeat(320)}@y.z`])(
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
  await using other = await startPds({ waitlist: { enabled: true } })
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
