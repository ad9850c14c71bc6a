/** What somebody learns who tries: nothing from the time of an answer, and five passwords a minute. */
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
