/** A server that has another name now, asked under the name that it had before. */
import { beforeAll, expect, test } from 'bun:test'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { createAccount } from '../../support/clients/account.ts'
import { confirmedAgent, exchangeAgent, type ConfirmedAgent } from '../../support/clients/agent.ts'
import { bearer } from '../../support/clients/http.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'

const PAGE = { accept: 'text/html' }

const { pds } = useWorld({
  config: { agentAuth: { anonymousEnabled: true, grantedScopes: ['atproto', 'repo:*?action=create'] } },
})
const alice = setUp(() => createAccount(pds, 'alice'))
let [former, present] = ['', '']
let formerDid = ''
/** A token that says that it is for the service under its former name. */
let serviceToken: string
let agent: ConfirmedAgent
beforeAll(async () => {
  const { port, host } = new URL(pds.url)
  former = host
  present = `new.localhost:${port}`
  formerDid = pds.ctx.config.serverDid
  const { body } = await alice.call(
    `com.atproto.server.getServiceAuth?aud=${encodeURIComponent(formerDid)}&lxm=com.atproto.repo.uploadBlob`,
  )
  serviceToken = body.token
  agent = await confirmedAgent(pds, alice)
  await pds.restart({
    publicUrl: `http://${present}`,
    serverDid: `did:web:new.localhost%3A${port}` as Did,
    formerUrls: [pds.url],
  })
})

const ask = (host: string, path: string, headers: Record<string, string> = {}, init: RequestInit = {}) =>
  fetch(pds.url + path, { redirect: 'manual', ...init, headers: { host, ...headers } })
const json = async (host: string, path: string) => (await ask(host, path)).json() as Promise<Record<string, unknown>>

test('sessions and service tokens from before stay valid, under either name', async () => {
  for (const host of [former, present]) {
    const session = await ask(host, '/xrpc/com.atproto.server.getSession', bearer(alice.accessJwt))
    expect([session.status, ((await session.json()) as { did: string }).did]).toEqual([200, alice.did])
  }
  const refreshed = await ask(former, '/xrpc/com.atproto.server.refreshSession', bearer(alice.refreshJwt), {
    method: 'POST',
  })
  expect(refreshed.status).toBe(200)
  const upload = await ask(
    present,
    '/xrpc/com.atproto.repo.uploadBlob',
    { ...bearer(serviceToken), 'content-type': 'text/plain' },
    { method: 'POST', body: 'a blob' },
  )
  expect(upload.status).toBe(200)
})

test('agents keep their assertions, and may name the former address', async () => {
  for (const resource of [pds.url, `http://${present}`])
    expect((await exchangeAgent(pds, agent.assertion, { resource })).status).toBe(200)
  expect((await exchangeAgent(pds, agent.assertion, { resource: 'https://other.test' })).status).toBe(400)
})

test('an account whose identity names the former address has not moved away, and does not move in', async () => {
  const headers = { ...bearer(alice.accessJwt), 'content-type': 'application/json' }
  const leaving = await ask(present, '/v1/move-out', headers)
  expect(await leaving.json()).toMatchObject({ isHere: true })
  const left = await ask(present, '/v1/move-out/leave', headers, { method: 'POST', body: '{}' })
  expect(left.status).toBe(409)
  const body = JSON.stringify({ identifier: alice.did, password: alice.password })
  const planned = await ask(present, '/v1/move-in/plan', headers, { method: 'POST', body })
  expect([planned.status, await planned.text()]).toEqual([400, expect.stringContaining('already on this server')])
})

test('the former DID resolves, and names the present address', async () => {
  for (const [host, id] of [
    [former, formerDid],
    [present, pds.ctx.config.serverDid],
  ] as const)
    expect(await json(host, '/.well-known/did.json')).toMatchObject({
      id,
      service: [{ serviceEndpoint: `http://${present}` }],
    })
  expect((await ask('other.localhost', '/.well-known/did.json')).status).toBe(404)
})

test('apps that find the service by its former address are led to its present issuer', async () => {
  for (const host of [former, present])
    expect(await json(host, '/.well-known/oauth-protected-resource')).toMatchObject({
      resource: `http://${host}`,
      authorization_servers: [`http://${present}`],
    })
  expect(await json(former, '/.well-known/oauth-authorization-server')).toMatchObject({
    issuer: `http://${present}`,
    protected_resources: [`http://${present}`, `http://${former}`],
  })
})

test('pages are redirected, and nothing else', async () => {
  const page = await ask(former, '/account/sign-in?identifier=alice', PAGE)
  expect([page.status, page.headers.get('location')]).toEqual([
    308,
    `http://${present}/account/sign-in?identifier=alice`,
  ])
  expect((await ask(present, '/account/sign-in', PAGE)).status).toBe(200)
  expect((await ask(former, '/xrpc/_health', PAGE)).status).toBe(200)
  expect((await ask(former, '/account/sign-in', PAGE, { method: 'POST' })).status).not.toBe(308)
})

test('a name that the service never had is no former name', async () => {
  await pds.restart({ publicUrl: `http://${present}`, serverDid: 'did:web:new.localhost' as Did, formerUrls: [] })
  const session = await ask(former, '/xrpc/com.atproto.server.getSession', bearer(alice.accessJwt))
  expect(session.status).toBe(400)
  expect((await ask(former, '/account/sign-in', PAGE)).status).toBe(200)
})
