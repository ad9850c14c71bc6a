/** What account holders, and operators, read of what happened to an account. */
import { describe, expect, test } from 'bun:test'
import { createAccount, logIn, type TestAccount } from '../../support/clients/account.ts'
import { basic, bearer, request } from '../../support/clients/http.ts'
import { CookieBrowser } from '../../support/clients/wallet-sign-in.ts'
import { ADMIN_TOKEN } from '../../support/servers/pds.ts'
import { runProgram } from '../../support/servers/program.ts'
import { useWorld } from '../../support/world.ts'

const FIREFOX = 'Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0'

const { pds } = useWorld({ config: { rateLimit: { enabled: false } } })

const listOf = ({ accessJwt }: TestAccount, query = '') =>
  request(`${pds.url}/v1/account/events${query}`, { headers: bearer(accessJwt) })
const namesOf = async (holder: TestAccount): Promise<string[]> =>
  (await listOf(holder)).body.events.map(({ event }: { event: string }) => event)
const adminCall = (nsid: string, json: object) =>
  request(`${pds.url}/xrpc/${nsid}`, { json, headers: basic('admin', ADMIN_TOKEN) })

async function browserOf({ handle, password }: TestAccount, headers: Record<string, string> = {}) {
  const browser = new CookieBrowser(pds)
  const { status } = await browser.send('/account/sign-in', { identifier: handle, password }, headers)
  if (status !== 303) throw new Error(`the sign-in answered ${status}`)
  return browser
}

describe('the list has', () => {
  test('sign-ins with program and network, those of one kind and place once a day', async () => {
    const ann = await createAccount(pds, 'ann')
    const headers = { 'user-agent': FIREFOX, 'x-forwarded-for': '198.51.100.23' }
    const session = () =>
      request(`${pds.url}/xrpc/com.atproto.server.createSession`, {
        json: { identifier: ann.handle, password: ann.password },
        headers,
      })
    pds.clock.advance({ days: 1 })
    await session()
    await session()
    const { body } = await session()
    await browserOf(ann, headers)
    const { events } = (await listOf({ ...ann, ...body })).body
    expect(events).toHaveLength(3)
    expect(events).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ event: 'signedIn', means: 'password on a page', times: 1 }),
        expect.objectContaining({
          event: 'signedIn',
          message: 'signed in',
          means: 'password',
          program: 'Firefox on Linux',
          network: '198.51.100.0/24',
          byOperator: false,
          times: 3,
        }),
        expect.objectContaining({ event: 'created', subject: ann.handle }),
      ]),
    )
    pds.clock.advance({ days: 1 })
    const next = (await session()).body
    expect((await listOf({ ...ann, ...next })).body.events).toHaveLength(4)
  })

  test('changes of who has access, and not what changed nothing', async () => {
    const bert = await createAccount(pds, 'bert')
    const { body: made } = await bert.call('com.atproto.server.createAppPassword', { json: { name: 'My phone' } })
    await logIn(pds, bert, made.password)
    await bert.call('com.atproto.server.revokeAppPassword', { json: { name: 'No such' } })
    await bert.call('com.atproto.server.revokeAppPassword', { json: { name: 'My phone' } })
    await bert.call('com.atproto.identity.updateHandle', { json: { handle: 'bertram.test' } })
    await bert.call('com.atproto.server.deactivateAccount', { json: {} })
    await bert.call('com.atproto.server.activateAccount', { method: 'POST' })
    const wrong = { identifier: bert.did, password: 'not the password' }
    await request(`${pds.url}/xrpc/com.atproto.server.createSession`, { json: wrong })
    expect((await namesOf(bert)).toSorted()).toEqual(
      [
        'created',
        'appPasswordMade',
        'signedIn',
        'appPasswordRevoked',
        'handleChanged',
        'deactivated',
        'activated',
      ].toSorted(),
    )
    const subjects = (await listOf(bert)).body.events.map(({ subject }: { subject?: string }) => subject)
    expect(subjects).toContain('My phone')
    expect(subjects).toContain('bertram.test')
  })

  test('what the operator did, without a name or a place', async () => {
    const cara = await createAccount(pds, 'cara')
    const subject = { $type: 'com.atproto.admin.defs#repoRef', did: cara.did }
    await adminCall('com.atproto.admin.updateSubjectStatus', { subject, takedown: { applied: true } })
    await adminCall('com.atproto.admin.updateSubjectStatus', { subject, takedown: { applied: false } })
    const back = await logIn(pds, cara, cara.password)
    const { events } = (await listOf(back)).body
    const byOperator = events.filter((event: { byOperator: boolean }) => event.byOperator)
    expect(byOperator.map(({ event }: { event: string }) => event).toSorted()).toEqual(['restored', 'takenDown'])
    for (const event of byOperator) expect(event).not.toContainAnyKeys(['program', 'network', 'actor'])
  })

  test('a download of all data, which an attempt without permission is not', async () => {
    const dora = await createAccount(pds, 'dora')
    const archive = (token: string) => fetch(`${pds.url}/v1/account/archive`, { headers: bearer(token) })
    const { body } = await dora.call('com.atproto.server.createAppPassword', { json: { name: 'app' } })
    const app = await logIn(pds, dora, body.password)
    await (await archive(app.accessJwt)).arrayBuffer()
    expect(await namesOf(dora)).not.toContain('exported')
    await (await archive(dora.accessJwt)).arrayBuffer()
    expect(await namesOf(dora)).toContain('exported')
  })
})

test('the list is read page by page', async () => {
  const emil = await createAccount(pds, 'emil')
  for (const name of ['one', 'two', 'three', 'four'])
    await emil.call('com.atproto.server.createAppPassword', { json: { name } })
  const first = await listOf(emil, '?limit=3')
  const second = await listOf(emil, `?limit=3&cursor=${encodeURIComponent(first.body.cursor)}`)
  expect([...first.body.events, ...second.body.events]).toEqual((await listOf(emil)).body.events)
  expect(second.body.cursor).toBeUndefined()
  expect((await listOf(emil, '?cursor=nonsense')).status).toBe(400)
})

test('nobody else reads it, and not every credential of the account does', async () => {
  const finn = await createAccount(pds, 'finn')
  const gina = await createAccount(pds, 'gina')
  expect(await namesOf(gina)).toEqual(['created'])
  const { body } = await finn.call('com.atproto.server.createAppPassword', { json: { name: 'app', privileged: true } })
  const app = await logIn(pds, finn, body.password)
  expect((await listOf(app)).status).toBeGreaterThanOrEqual(400)
  expect((await request(`${pds.url}/v1/account/events`)).status).toBe(401)
  const path = `/account/activity?account=${finn.did}`
  expect((await new CookieBrowser(pds).open(path)).headers.get('location')).toBe('/account/sign-in')
  expect((await (await browserOf(gina)).open(path)).status).toBe(303)
})

test('the page tells it in the language of the holder, and shows names of others as text', async () => {
  const hans = await createAccount(pds, 'hans')
  await hans.call('com.atproto.server.createAppPassword', { json: { name: '<script>alert(1)</script>\u202eevil' } })
  const hostile = { 'user-agent': '<img src=x onerror=alert(1)>/1' }
  const browser = await browserOf(hans, hostile)
  const open = async (path: string, language: string) => {
    const headers = { ...hostile, cookie: browser.cookie, 'accept-language': language }
    return String((await request(`${pds.url}${path}`, { headers })).body)
  }
  const text = await open('/account/activity', 'de')
  expect(text).toContain('lang="de"')
  expect(text).toContain('Ein App-Passwort wurde erstellt')
  expect(text).toContain('&lt;script&gt;alert(1)&lt;/script&gt;evil')
  expect(text).not.toContain('<script>alert')
  expect(text).not.toContain('<img src=x')
  expect(await open('/account', 'en')).toContain('An app password was created')
})

test('after ninety days an event is forgotten, and with the account all of them', async () => {
  const ines = await createAccount(pds, 'ines')
  const jona = await createAccount(pds, 'jona')
  const stored = async ({ did }: TestAccount) => (await pds.rows('account_event', { did })).length
  pds.clock.advance({ days: 89 })
  const back = await logIn(pds, jona, jona.password)
  await pds.runSweep('account-events')
  expect([await stored(ines), await stored(jona)]).toEqual([1, 2])
  pds.clock.advance({ days: 1 })
  const again = await logIn(pds, jona, jona.password)
  expect((await namesOf(again)).filter((name) => name === 'created')).toEqual([])
  await pds.runSweep('account-events')
  expect([await stored(ines), await stored(back)]).toEqual([0, 2])
  await adminCall('com.atproto.admin.deleteAccount', { did: jona.did })
  expect(await stored(jona)).toBe(0)
})

test('a record commit writes no event', async () => {
  const kira = await createAccount(pds, 'kira')
  const record = { $type: 'app.bsky.feed.post', text: 'hello', createdAt: '2026-01-01T00:00:00Z' }
  const input = { repo: kira.did, collection: 'app.bsky.feed.post', record }
  expect((await kira.call('com.atproto.repo.createRecord', { json: input })).status).toBe(200)
  expect(await pds.rows('account_event', { did: kira.did })).toHaveLength(1)
})

test('the operator has the list with a command', async () => {
  const lena = await createAccount(pds, 'lena')
  await lena.call('com.atproto.server.createAppPassword', { json: { name: 'Laptop' } })
  const { code, out } = await runProgram(['account', 'events', 'lena', '--url', pds.url], {
    SERVICE_ADMIN_TOKEN: ADMIN_TOKEN,
  })
  expect(code).toBe(0)
  expect(out).toMatch(/app password created +Laptop/)
  expect(out).toContain('account created')
})

test('of each kind of event, the newest five thousand of an account are kept', async () => {
  const mia = await createAccount(pds, 'mia')
  const noah = await createAccount(pds, 'noah')
  const at = pds.clock.now()
  const store = (did: string, event: string, count: number) =>
    pds.plant(
      'account_event',
      Array.from({ length: count }, (_, i) => ({
        did,
        id: `${event} ${i}`,
        at: at + i,
        event,
        by_operator: 0,
        times: 1,
      })),
    )
  await store(mia.did, 'deactivated', 6500)
  await store(mia.did, 'signedIn', 5001)
  await store(mia.did, 'passwordChanged', 5000)
  await store(noah.did, 'signedIn', 5000)
  await pds.runSweep('account-events')
  const kept = async (did: string, event: string) =>
    (await pds.rows('account_event', { did, event })).map((row) => Number(row.at) - at).toSorted((a, b) => a - b)
  expect(await kept(mia.did, 'created')).toHaveLength(1)
  expect(await kept(mia.did, 'deactivated')).toEqual(Array.from({ length: 5000 }, (_, i) => 1500 + i))
  for (const [did, event] of [
    [mia.did, 'signedIn'],
    [mia.did, 'passwordChanged'],
    [noah.did, 'signedIn'],
  ] as const)
    expect(await kept(did, event)).toHaveLength(5000)
})
