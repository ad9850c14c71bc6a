/** What tells programs that they can register here: it appears and disappears with the three switches, all at once. */
import { expect, test } from 'bun:test'
import type { ConfigOverrides } from '../../support/servers/config.ts'
import { xrpc } from '../../support/clients/account.ts'
import { request } from '../../support/clients/http.ts'
import { startPds, type TestPds } from '../../support/servers/pds.ts'

const trustedIssuers = [
  {
    issuer: 'https://idp.example',
    audience: null,
    algorithm: 'ES256',
    keys: { source: 'jwks', url: 'https://idp.example/jwks' },
  },
] as const

const GRANTS = ['urn:ietf:params:oauth:grant-type:jwt-bearer', 'urn:workos:agent-auth:grant-type:claim']

async function offered(pds: TestPds) {
  const [description, metadata, skill] = [
    await xrpc(pds, 'com.atproto.server.describeServer'),
    await request(`${pds.url}/.well-known/oauth-authorization-server`),
    await request(`${pds.url}/auth.md`),
  ]
  return {
    capability: description.body.extension.capabilities.includes('agents'),
    grants: GRANTS.map((grant) => metadata.body.grant_types_supported.includes(grant)),
    types: metadata.body.agent_auth?.identity_types_supported,
    skill: skill.status,
  }
}

test.each([
  [{ anonymousEnabled: true }, ['anonymous']],
  [{ serviceAuthEnabled: true }, ['service_auth']],
  [{ trustedIssuers }, ['identity_assertion']],
  [
    { anonymousEnabled: true, serviceAuthEnabled: true, trustedIssuers },
    ['anonymous', 'identity_assertion', 'service_auth'],
  ],
] as [ConfigOverrides['agentAuth'], string[]][])('with %j, the ways %j are offered', async (agentAuth, types) => {
  await using pds = await startPds({ agentAuth })
  expect(await offered(pds)).toEqual({ capability: true, grants: [true, true], types, skill: 200 })
  await pds.restart({ agentAuth: { anonymousEnabled: false, serviceAuthEnabled: false, trustedIssuers: [] } })
  expect(await offered(pds)).toEqual({ capability: false, grants: [false, false], types: undefined, skill: 404 })
})

test('the metadata names every address that a program needs', async () => {
  await using pds = await startPds({ agentAuth: { anonymousEnabled: true }, serviceName: 'a name' })
  const resource = await request(`${pds.url}/.well-known/oauth-protected-resource`)
  expect(resource.body).toMatchObject({ resource: pds.url, resource_name: 'a name', authorization_servers: [pds.url] })
  const { body } = await request(`${pds.url}/.well-known/oauth-authorization-server`)
  expect(body.agent_auth).toEqual({
    skill: `${pds.url}/auth.md`,
    identity_endpoint: `${pds.url}/agent/identity`,
    claim_endpoint: `${pds.url}/agent/identity/claim`,
    events_endpoint: `${pds.url}/agent/event/notify`,
    identity_types_supported: ['anonymous'],
    identity_assertion: { assertion_types_supported: ['urn:ietf:params:oauth:token-type:id-jag'] },
    events_supported: ['https://schemas.workos.com/events/agent/auth/identity/assertion/revoked'],
  })
  for (const address of [
    body.agent_auth.skill,
    body.agent_auth.identity_endpoint,
    body.agent_auth.claim_endpoint,
    body.agent_auth.events_endpoint,
  ])
    expect((await request(address, address.endsWith('.md') ? {} : { json: {} })).status).not.toBe(404)
  const closed = await xrpc(pds, 'com.atproto.server.getSession')
  expect(closed.headers.get('www-authenticate')).toBe(
    `Bearer resource_metadata="${pds.url}/.well-known/oauth-protected-resource"`,
  )
})
