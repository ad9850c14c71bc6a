/** Forms that a person sends twice, by a doubled click: what they ask for is done once, and its outcome is seen. */
import { expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { createAccount, PASSWORD } from '../../support/clients/account.ts'
import { signIn } from '../../support/clients/browser.ts'
import { request } from '../../support/clients/http.ts'
import { loopbackClientId, OAuthClient } from '../../support/clients/oauth-client.ts'
import { setUp } from '../../support/set-up.ts'
import { until } from '../../support/until.ts'
import { useWorld } from '../../support/world.ts'

const { pds, freshPage } = useWorld({
  browser: true,
  config: { rateLimit: { enabled: false } },
  options: { alone: 'a node knows the forms that it has got itself' },
})
const app = setUp(() => Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response('back in the app') }))

/** The second press comes once the first request has left, as with a hand that is slower than a test. */
async function pressTwice(page: Page, name: string): Promise<void> {
  const button = page.getByRole('button', { name, exact: true })
  await button.scrollIntoViewIfNeeded()
  const { x, y, width, height } = (await button.boundingBox())!
  const left = page.waitForRequest((sent) => sent.method() === 'POST')
  await page.mouse.click(x + width / 2, y + height / 2)
  await left
  await page.mouse.click(x + width / 2, y + height / 2)
}

/** Who is signed in once the browser has come to its next page, on which the second press may have fallen. */
async function signedInAs(page: Page, isNext: (url: string) => boolean): Promise<string> {
  await until(() => isNext(page.url()))
  await page.waitForLoadState()
  await page.goto(`${pds.url}/account`)
  return page.getByRole('heading', { level: 1 }).innerText()
}

test('who creates an account is signed in with it, and not told that the handle is taken', async () => {
  const page = await freshPage()
  await page.goto(`${pds.url}/account/sign-up`)
  await page.getByLabel('Handle').fill('dora')
  await page.getByLabel('Email address').fill('dora@mail.example')
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD)
  await pressTwice(page, 'Create account')
  expect(await signedInAs(page, (url) => !url.includes('sign-up'))).toBe('@dora.test')
})

test('an app that is let in gets its code', async () => {
  const alice = await createAccount(pds, 'alice')
  const redirect = 'http://127.0.0.1/callback'
  const client = new OAuthClient(
    pds,
    loopbackClientId('atproto', redirect),
    null,
    `http://127.0.0.1:${app.port}/callback`,
  )
  const page = await freshPage()
  await page.goto(client.authorizeUrl(await client.requestUri({ scope: 'atproto', login_hint: alice.handle })))
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD)
  await pressTwice(page, 'Allow access')
  await until(() => page.url().includes('/callback'))
  const code = new URL(page.url()).searchParams.get('code')!
  expect((await client.redeem(code)).body.sub).toBe(alice.did)
})

test('who changes the password stays signed in', async () => {
  const bob = await createAccount(pds, 'bob')
  const page = await freshPage()
  await signIn(page, pds, bob)
  const part = page.locator('details', { has: page.locator('form[action^="/account/password"]') }).last()
  await part.locator('summary').first().click()
  await part.locator('input[name=current]').fill(PASSWORD)
  await part.locator('input[name=next]').fill('a-password-after-that')
  await pressTwice(page, 'Change password')
  expect(await signedInAs(page, (url) => url !== `${pds.url}/account`)).toBe('@bob.test')
})

const send = (path: string, fields: Record<string, string>, headers: Record<string, string> = {}) =>
  request(`${pds.url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded', 'sec-fetch-site': 'same-origin', ...headers },
    body: new URLSearchParams(fields).toString(),
  })

test('a form that differs, or that another browser sends, is another one', async () => {
  const signUps = async (handle: string, others: { fields?: object; headers?: Record<string, string> }) => {
    const form = { handle, email: `${handle}@mail.example`, password: PASSWORD }
    const path = '/account/sign-up'
    const answers = await Promise.all([send(path, form), send(path, { ...form, ...others.fields }, others.headers)])
    return {
      statuses: answers.map(({ status }) => status).sort(),
      browsers: new Set(answers.flatMap(({ headers }) => headers.getSetCookie())).size,
    }
  }
  expect(await signUps('carol', {})).toEqual({ statuses: [303, 303], browsers: 1 })
  for (const [handle, other] of [
    ['dave', { fields: { password: `${PASSWORD}!` } }],
    ['erin', { headers: { 'user-agent': 'Another/1' } }],
    ['fred', { headers: { 'x-forwarded-for': '198.51.100.7' } }],
  ] as const)
    expect([handle, await signUps(handle, other)]).toEqual([handle, { statuses: [303, 400], browsers: 1 }])
})

test('a consent that is sent twice gives both requests the one code', async () => {
  const hanna = await createAccount(pds, 'hanna')
  const client = new OAuthClient(pds, loopbackClientId('atproto'))
  const fields = {
    request_uri: await client.requestUri({ scope: 'atproto' }),
    client_id: client.clientId,
    identifier: hanna.handle,
    password: PASSWORD,
  }
  const decide = (action: string) => send('/oauth/authorize', { ...fields, action })
  const answers = [...(await Promise.all([decide('approve'), decide('approve')])), await decide('approve')]
  expect(answers.map(({ status }) => status)).toEqual([303, 303, 303])
  const [location, ...others] = new Set(answers.map(({ headers }) => headers.get('location')!))
  expect(others).toEqual([])
  const code = new URL(location!).searchParams.get('code')!
  expect([(await client.redeem(code)).status, (await client.redeem(code)).status]).toEqual([200, 400])
  expect((await decide('deny')).status).toBe(400)
})

test('a second request may have the cookies of the response to the first one', async () => {
  const form = { handle: 'gina', email: 'gina@mail.example', password: PASSWORD }
  const first = await send('/account/sign-up', form)
  const cookies = first.headers.getSetCookie().map((cookie) => cookie.split(';')[0]!)
  expect([first.status, cookies.length > 0]).toEqual([303, true])
  const second = await send('/account/sign-up', form, { cookie: cookies.join('; ') })
  expect([second.status, second.headers.get('location')]).toEqual([303, first.headers.get('location')])
})
