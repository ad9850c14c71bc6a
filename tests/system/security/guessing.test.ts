/** What somebody learns or blocks who tries: nothing from the time of an answer, and five passwords a minute. */
import { expect, test } from 'bun:test'
import { createAccount } from '../../support/clients/account.ts'
import { request } from '../../support/clients/http.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'

const { pds } = useWorld({
  config: { rateLimit: { enabled: false } },
  options: { mailer: { send: () => new Promise(() => undefined), check: async () => null } },
})
const alice = setUp(() => createAccount(pds, 'alice'))

const form = (path: string, fields: Record<string, string>, cookie = '') =>
  request(`${pds.url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded', cookie },
    body: new URLSearchParams(fields).toString(),
  })

test('an answer about a forgotten password does not wait for the mail', async () => {
  for (const email of [alice.email, 'nobody@example.com']) {
    expect(await form('/account/reset-password', { email })).toMatchObject({ status: 303 })
    expect(await request(`${pds.url}/xrpc/com.atproto.server.requestPasswordReset`, { json: { email } })).toMatchObject(
      {
        status: 200,
        body: '',
      },
    )
  }
})

test('a browser that was left signed in is no place to guess the password', async () => {
  const signedIn = await form('/account/sign-in', { identifier: alice.handle, password: alice.password })
  const cookie = signedIn.headers.get('set-cookie')!.split(';')[0]!
  const page = await request(`${pds.url}/account`, { headers: { cookie } })
  const form_token = /name="form_token" value="([^"]+)"/.exec(page.body)![1]!
  const change = (current: string) =>
    form('/account/password', { account: alice.did, form_token, current, next: 'a new password' }, cookie)
  const move = (current: string) =>
    form('/account/email', { account: alice.did, form_token, current, email: 'mallory@example.com' }, cookie)
  for (let i = 0; i < 3; i++) expect((await change(`guess ${i}`)).body).toContain('not your current password')
  for (let i = 0; i < 2; i++) expect((await move(`guess ${i}`)).body).toContain('not your current password')
  expect((await change(alice.password)).status).toBe(429)
  expect((await move(alice.password)).body).toContain('Too many attempts')
  pds.clock.advance({ secs: 61 })
  expect((await change(alice.password)).status).toBe(303)
})

test('guesses of others, who know the DID, do not keep a holder from proving who they are', async () => {
  const carol = await createAccount(pds, 'carol')
  const signedIn = await form('/account/sign-in', { identifier: carol.handle, password: carol.password })
  const cookie = signedIn.headers.get('set-cookie')!.split(';')[0]!
  const page = await request(`${pds.url}/account`, { headers: { cookie } })
  const own = { account: carol.did, form_token: /name="form_token" value="([^"]+)"/.exec(page.body)![1]! }
  const tryPassword = (password: string, identifier: string = carol.did) =>
    request(`${pds.url}/xrpc/com.atproto.server.createSession`, { json: { identifier, password } })
  pds.clock.advance({ secs: 7200 })
  for (let i = 0; i < 5; i++) expect((await tryPassword(`guess ${i}`)).status).toBe(401)
  // No name that somebody enters counts as the holder's own.
  for (let i = 0; i < 5; i++) expect((await tryPassword(`guess ${i}`, `SIGNED IN ${carol.did}`)).status).toBe(401)
  expect((await tryPassword(carol.password)).status).toBe(429)

  const email = { ...own, current: carol.password, email: 'carol@elsewhere.example' }
  expect((await form('/account/email', email, cookie)).status).toBe(303)
  const proven = await form('/account/app-passwords', { ...own, name: 'phone', password: carol.password }, cookie)
  const renewed = proven.headers.getSetCookie()[0]?.split(';')[0]
  const again = await request(`${pds.url}/account`, { headers: { cookie: renewed ?? '' } })
  const form_token = /name="form_token" value="([^"]+)"/.exec(again.body)?.[1] ?? ''
  const change = { ...own, form_token, current: carol.password, next: 'a new password' }
  expect((await form('/account/password', change, renewed)).status).toBe(303)
})
