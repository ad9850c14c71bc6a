/** Forms that anybody may send: from pages of ours, also in browsers that do not say where a form comes from. */
import { describe, expect, test } from 'bun:test'
import { createAccount } from '../../support/clients/account.ts'
import { request } from '../../support/clients/http.ts'
import { startPds } from '../../support/servers/pds.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'

const { pds } = useWorld({ config: { rateLimit: { enabled: false } } })
const alice = setUp(() => createAccount(pds, 'alice'))

type Fields = Record<string, string>

const post = (path: string, fields: Fields, headers: Fields = {}) =>
  request(`${pds.url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
    body: new URLSearchParams(fields).toString(),
  })

/** A browser without Fetch Metadata, which hides the origin of forms on pages without referrer. */
async function openIn(path: string, cookie = '') {
  const { headers, body } = await request(`${pds.url}${path}`, { headers: { cookie } })
  return { cookie: headers.get('set-cookie'), token: /name="form_token" value="([^"]+)"/.exec(body)?.[1] }
}
const HIDDEN = { origin: 'null' }
const bare = (setCookie: string | null) => setCookie!.split(';')[0]!

describe.each([
  ['/account/sign-in', () => ({ identifier: alice.handle, password: alice.password }), 303],
  [
    '/account/sign-up',
    () => ({
      handle: `x${crypto.randomUUID().slice(0, 8)}`,
      email: `${crypto.randomUUID()}@example.com`,
      password: 'a long password',
    }),
    303,
  ],
  ['/account/reset-password', () => ({ email: alice.email }), 303],
  ['/account/reset-password/code', () => ({ code: 'wrong', password: 'a long password' }), 400],
] as [string, () => Fields, number][])('%s', (path, fields, status) => {
  test('is sent from a page of ours', async () => {
    for (const headers of [
      { origin: pds.url },
      { 'sec-fetch-site': 'same-origin' },
      { 'sec-fetch-site': 'same-origin', origin: 'null' },
    ] as Fields[])
      expect((await post(path, fields(), headers)).status).toBe(status)
  })

  test('is refused from elsewhere', async () => {
    const elsewhere: Fields[] = [
      HIDDEN,
      { origin: 'https://evil.example' },
      { origin: `${pds.url}.evil.example` },
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site', origin: pds.url },
      { 'sec-fetch-site': 'none' },
      { 'sec-fetch-site': 'cross-site', origin: pds.url },
    ]
    for (const headers of elsewhere) {
      const answer = await post(path, fields(), headers)
      expect([headers, answer.status, answer.headers.get('set-cookie')]).toEqual([headers, 403, null])
    }
  })

  test('is taken from a browser that hides the origin when it brings the token of its page', async () => {
    const page = await openIn(path)
    const cookie = bare(page.cookie)
    expect((await post(path, { ...fields(), form_token: page.token! }, { ...HIDDEN, cookie })).status).toBe(status)
    // The cookie stays, so that pages in other tabs stay good.
    expect(await openIn(path, cookie)).toEqual({ cookie: null, token: page.token! })

    const other = await openIn(path)
    const planted: [Fields, Fields][] = [
      [{ form_token: page.token! }, {}],
      [{}, { cookie }],
      [{ form_token: '' }, { cookie }],
      [{ form_token: other.token! }, { cookie }],
      [{ form_token: page.token! }, { cookie: 'holdfast-form=' }],
      [{ form_token: '' }, { cookie: 'holdfast-form=guess' }],
      [{ form_token: page.token! }, { cookie, origin: 'https://evil.example' }],
      [{ form_token: page.token! }, { cookie, 'sec-fetch-site': 'cross-site' }],
    ]
    for (const [token, headers] of planted)
      expect([token, headers, (await post(path, { ...fields(), ...token }, { ...HIDDEN, ...headers })).status]).toEqual(
        [token, headers, 403],
      )
  })

  test('needs no cookie in a browser that says where forms come from', async () => {
    const { headers, body } = await request(`${pds.url}${path}`, {
      headers: { 'sec-fetch-site': 'none', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' },
    })
    expect(headers.get('set-cookie')).toBeNull()
    expect(body).not.toContain('form_token')
  })
})

test('somebody who is signed in can act in such a browser, and no other site for them', async () => {
  const page = await openIn('/account/sign-in')
  const signedIn = await post(
    '/account/sign-in',
    { identifier: alice.handle, password: alice.password, form_token: page.token! },
    { ...HIDDEN, cookie: bare(page.cookie) },
  )
  const cookie = `${bare(page.cookie)}; ${bare(signedIn.headers.get('set-cookie'))}`
  const account = await openIn('/account', cookie)
  const act = (form_token: string) =>
    post('/account/browsers', { account: alice.did, form_token }, { ...HIDDEN, cookie })
  expect((await act(account.token!)).status).toBe(303)
  for (const token of ['', 'guess', page.token!]) expect((await act(token)).status).toBe(403)
})

test('the cookie of forms is for this host alone, and out of reach of scripts', async () => {
  const { cookie } = await openIn('/account/sign-in')
  expect(cookie).toMatch(/^holdfast-form=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax$/)
  await using secure = await startPds({ publicUrl: 'https://pds.example' })
  const { headers } = await request(`${secure.url}/account/sign-in`)
  expect(headers.get('set-cookie')).toMatch(/^__Host-holdfast-form=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Secure$/)
})

test('a page is out of the hands of whoever opened it', async () => {
  for (const path of ['/', '/account/sign-in', '/account/sign-up', '/oauth/authorize', '/account/reset-password'])
    expect([
      path,
      (await request(`${pds.url}${path}`, { headers: { accept: 'text/html' } })).headers.get(
        'cross-origin-opener-policy',
      ),
    ]).toEqual([path, 'same-origin'])
})
