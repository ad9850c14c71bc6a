/** Requests that failed or were refused, found by the id that the error carries. */
import { expect, test } from 'bun:test'
import { createAccount } from '../../support/clients/account.ts'
import { ConsoleBrowser } from '../../support/clients/console-browser.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { giveRole, operateAs, operatorSignIn, roleHolder } from '../../support/clients/role-holder.ts'
import { ADMIN_TOKEN, startPds } from '../../support/servers/pds.ts'
import { runProgram } from '../../support/servers/program.ts'
import { setUp } from '../../support/set-up.ts'
import { until } from '../../support/until.ts'
import { useWorld } from '../../support/world.ts'

const { pds } = useWorld({ config: { rateLimit: { enabled: false }, console: { keptFailures: 50 } } })
const alice = setUp(() => createAccount(pds, 'alice'))
const mona = setUp(() => roleHolder(pds, 'mona', 'moderator'))

const list = async (query = '') =>
  (await request(`${pds.url}/v1/admin/requests?${query}`, { headers: bearer(ADMIN_TOKEN) })).body
/** Any node of a cluster finds it, some seconds later. */
const kept = (id: string) => until(async () => (await list(`id=${id}`)).requests.length === 1)
const browser = { accept: 'text/html' }
const ids = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/

/** Requests that fail while a table is away. Returns their ids, oldest first. */
async function fail(count = 1): Promise<string[]> {
  const ids: string[] = []
  const back = await pds.hide('operator_audit')
  try {
    while (ids.length < count) {
      const { status, headers } = await request(`${pds.url}/v1/admin/audit?cursor=1&secret=hunter2`, {
        headers: bearer(ADMIN_TOKEN),
      })
      expect(status).toBe(500)
      ids.push(headers.get('x-request-id')!)
      pds.clock.advance({ secs: 1 })
    }
    return ids
  } finally {
    await back()
  }
}

test('a refusal carries an id, under which operators find which endpoint refused, and nothing that was sent', async () => {
  const { status, headers } = await request(
    `${pds.url}/xrpc/com.atproto.repo.getRecord?repo=hunter2&collection=a&rkey=b`,
  )
  const id = headers.get('x-request-id')!
  expect([status, id]).toEqual([400, expect.stringMatching(ids)])
  expect(headers.get('access-control-expose-headers')).toContain('X-Request-Id')
  await kept(id)
  const { requests } = await list(`id=${id}`)
  expect(requests).toEqual([
    {
      id,
      at: expect.any(String),
      method: 'GET',
      route: 'com.atproto.repo.getRecord',
      status: 400,
      error: 'InvalidRequest',
    },
  ])
  expect((await list(`id=${id.slice(0, 8)}`)).requests[0].id).toBe(id)
  expect(JSON.stringify(await list())).not.toContain('hunter2')
})

test('a failure is found by its id, which its log lines have too', async () => {
  const [id = ''] = await fail()
  await kept(id)
  expect((await list(`id=${id}&kind=failed`)).requests).toMatchObject([
    { id, status: 500, error: 'InternalServerError' },
  ])
  expect((await list(`id=${id}&kind=refused`)).requests).toEqual([])
  expect(pds.log.some(({ message, requestId }) => message === 'request failed' && requestId === id)).toBe(true)
})

test('the page of an error shows the id', async () => {
  const { status, headers, body } = await request(`${pds.url}/account/nowhere?token=hunter2`, { headers: browser })
  expect(status).toBe(404)
  expect(body).toContain(headers.get('x-request-id')!)
  const german = await request(`${pds.url}/account/nowhere`, { headers: { ...browser, 'accept-language': 'de' } })
  expect(german.body).toContain(`nenne ihnen diese Nummer: ${german.headers.get('x-request-id')}`)
})

test('a command and a page of the console find it; the role decides who sees it', async () => {
  const [id = ''] = await fail()
  await kept(id)
  const run = (words: string[]) =>
    runProgram(['requests', ...words, '--url', pds.url], { SERVICE_ADMIN_TOKEN: ADMIN_TOKEN })
  expect(await run([id])).toMatchObject({
    code: 0,
    out: expect.stringMatching(/500 +InternalServerError +GET .*admin.audit/),
  })
  expect(await run(['ffff0000'])).toMatchObject({ code: 1, out: 'No request with the id ffff0000 is kept.\n' })
  expect((await run(['--failed', '--json'])).out).toContain(id)

  const desk = new ConsoleBrowser(pds)
  await desk.signIn(mona.did)
  expect((await desk.open(`/admin/requests?id=${id}`)).body).toContain('500 <span lang="en">InternalServerError</span>')
  expect((await desk.open('/admin/requests?kind=evil&id="<script>')).body).not.toContain('<script')
  await giveRole(pds, alice.did, 'invite-steward')
  const { token } = (await operatorSignIn(pds, alice.did)).body
  expect((await operateAs(pds, token, '/v1/admin/requests', {})).status).toBe(403)
})

test('what strangers cause is bounded, and pushes out no failure', async () => {
  const [id = ''] = await fail()
  const answers = []
  for (let i = 0; i < 30; i++) answers.push(await request(`${pds.url}/xrpc/com.atproto.server.getSession`))
  const named = answers.filter(({ headers }) => headers.has('x-request-id'))
  // Each node of a cluster has a budget of its own.
  expect(named.length).toBeLessThanOrEqual(20)
  for (let i = 0; i < 60; i++) {
    expect((await request(`${pds.url}/xrpc/com.atproto.space.nothing`)).status).toBe(501)
    expect((await request(`${pds.url}/xrpc/com.atproto.identity.resolveDid?did=did:web:nobody.test`)).status).toBe(502)
  }
  await kept(id)
  expect((await list(`id=${id}&kind=failed`)).requests).toHaveLength(1)
  const ids = await fail(60)
  await kept(ids.at(-1)!)
  await kept(ids.at(-2)!)
  const { requests } = await list('limit=100&kind=failed')
  expect(requests).toHaveLength(50)
  expect(requests.some((one: { id: string }) => one.id === id)).toBe(false)
  const { requests: first, cursor } = await list('limit=20&kind=failed')
  const { requests: second } = await list(`limit=20&kind=failed&cursor=${encodeURIComponent(cursor)}`)
  expect([...first, ...second]).toEqual(requests.slice(0, 40))
})

test('what clients do again by themselves has no id', async () => {
  pds.clock.advance({ secs: 3 * 3600 })
  const { status, headers } = await request(`${pds.url}/xrpc/com.atproto.server.getSession`, {
    headers: bearer(alice.accessJwt),
  })
  expect([status, headers.get('x-request-id')]).toEqual([400, null])
})

test('without a number to keep there are no ids', async () => {
  await using other = await startPds({ console: { keptFailures: 0 } })
  const { headers } = await request(`${other.url}/xrpc/com.atproto.server.getSession`)
  expect(headers.get('x-request-id')).toBeNull()
  expect((await request(`${other.url}/v1/admin/requests`, { headers: bearer(ADMIN_TOKEN) })).status).toBe(404)
})
