/** Refusals and faults, as a browser shows them. */
import { beforeAll, describe, expect, test } from 'bun:test'
import { createAccount } from '../../support/clients/account.ts'
import { request } from '../../support/clients/http.ts'
import { OAuthClient } from '../../support/clients/oauth-client.ts'
import { startPds } from '../../support/servers/pds.ts'
import { useWorld } from '../../support/world.ts'

const { pds, freshPage } = useWorld({ browser: true })
beforeAll(async () => {
  await createAccount(pds, 'alice')
})

const ACCEPT = 'text/html,application/xhtml+xml,*/*;q=0.8'
const kind = (answer: { headers: Headers }) => answer.headers.get('content-type')!.split(';')[0]

test('an address without a page says so, and leads on', async () => {
  const page = await freshPage()
  for (const path of ['/no/such/page', '/account/no-such-page', '/oauth/authorized']) {
    const response = await page.goto(pds.url + path)
    expect({
      path,
      status: response!.status(),
      heading: await page.getByRole('heading', { level: 1 }).textContent(),
    }).toEqual({
      path,
      status: 404,
      heading: 'Page not found',
    })
  }
  await page.getByRole('link', { name: 'About this server' }).click()
  expect(page.url()).toBe(`${pds.url}/`)
  await page.goto(`${pds.url}/no/such/page`)
  await page.getByRole('link', { name: 'Your account' }).click()
  expect(page.url()).toBe(`${pds.url}/account/sign-in`)
  await page.goto(`${pds.url}/admin/no-such-page`)
  expect(await page.getByRole('link', { name: 'Your account' }).count()).toBe(0)
  await page.getByRole('link', { name: 'Console' }).click()
  expect(new URL(page.url()).pathname).toBe('/admin/sign-in')
})

describe('what programs ask for stays what programs read', () => {
  test.each([
    ['/xrpc/com.example.unknown', 'application/json'],
    ['/xrpc/not-a-method', 'application/json'],
    ['/v1/nowhere', 'application/json'],
    ['/oauth/nowhere', 'application/json'],
    ['/.well-known/nowhere', 'application/json'],
  ])('%s, also for a browser', async (path, type) => {
    expect(kind(await request(pds.url + path, { headers: { accept: ACCEPT } }))).toBe(type)
  })

  test('anywhere else, for who does not ask for a page', async () => {
    const answer = await request(`${pds.url}/nowhere`)
    expect({ status: answer.status, kind: kind(answer), body: answer.body }).toEqual({
      status: 404,
      kind: 'text/plain',
      body: 'Not Found\n',
    })
    expect(kind(await request(`${pds.url}/nowhere`, { headers: { accept: ACCEPT } }))).toBe('text/html')
  })
})

test('the host of a handle has no pages, and leads to the server with a style that is found', async () => {
  const answer = await request(`${pds.url}/profile`, { headers: { accept: ACCEPT, host: 'alice.test' } })
  expect({ status: answer.status, kind: kind(answer) }).toEqual({ status: 404, kind: 'text/html' })
  for (const link of answer.body.matchAll(/(?:href|src)="([^"#]*)"/g))
    if (link[1] !== 'data:,') expect(link[1]).toStartWith(pds.url)
  expect(answer.headers.get('content-security-policy')).toContain(`style-src ${pds.url};`)
  expect(
    await request(`${pds.url}/.well-known/atproto-did`, { headers: { accept: ACCEPT, host: 'alice.test' } }),
  ).toMatchObject({
    status: 200,
  })
})

test('a request that is one too many is told how long to wait', async () => {
  await using busy = await startPds(
    { rateLimit: { enabled: true, globalIpPer5min: 3 } },
    { alone: 'each node may let one more through' },
  )
  const page = await freshPage()
  for (let i = 0; i < 4; i++) await page.goto(`${busy.url}/account/sign-in`)
  expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe('Too many attempts')
  expect(await page.getByText('Please wait 5 minutes').count()).toBe(1)
})

test('a form of the consent page that is refused leads back to its request', async () => {
  const page = await freshPage()
  const app = new OAuthClient(pds)
  await page.goto(app.authorizeUrl(await app.requestUri()))
  await page.getByLabel('Handle or email address').fill('alice.test')
  await page.getByLabel('Password', { exact: true }).fill('x'.repeat(70_000))
  await page.getByRole('button', { name: 'Allow access' }).click()
  expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe('Too large')
  await page.getByRole('link', { name: 'Back to the request' }).click()
  expect(await page.getByRole('button', { name: 'Allow access' }).isVisible()).toBe(true)
})

test('who comes from an app is sent back to it', async () => {
  const page = await freshPage()
  await page.goto(`${pds.url}/oauth/authorize?client_id=https://app.example/`)
  expect(await page.getByText('go back to it and start again').count()).toBe(1)
  expect(await page.getByRole('link', { name: 'Your account' }).count()).toBe(1)
})
