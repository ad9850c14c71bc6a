/** What clients discover, as they read it: byte for byte where they compare byte for byte. */
import { expect, test } from 'bun:test'
import { oauthAuthorizationServerMetadataSchema, oauthProtectedResourceMetadataSchema } from '@atproto/oauth-types'
import { request } from '../../support/clients/http.ts'
import { useWorld } from '../../support/world.ts'

const { pds } = useWorld({ config: { serviceName: 'A quiet corner' } })

test('the resource names itself and its one authorization server', async () => {
  const { status, headers, body } = await request(`${pds.url}/.well-known/oauth-protected-resource`)
  expect({ status, type: headers.get('content-type') }).toEqual({
    status: 200,
    type: expect.stringMatching(/^application\/json/),
  })
  expect(headers.get('cache-control')).toBe('max-age=300')
  expect(body).toMatchObject({ resource: pds.url, resource_name: 'A quiet corner', authorization_servers: [pds.url] })
  expect(oauthProtectedResourceMetadataSchema.safeParse(body).success).toBe(true)
})

test('the authorization server describes what it does, and no more', async () => {
  const { status, body } = await request(`${pds.url}/.well-known/oauth-authorization-server`)
  expect(status).toBe(200)
  expect(oauthAuthorizationServerMetadataSchema.safeParse(body).success).toBe(true)
  expect(body).toMatchObject({
    issuer: pds.url,
    require_pushed_authorization_requests: true,
    client_id_metadata_document_supported: true,
    authorization_response_iss_parameter_supported: true,
    request_parameter_supported: false,
    code_challenge_methods_supported: ['S256'],
    prompt_values_supported: ['login', 'consent', 'create'],
    grant_types_supported: ['authorization_code', 'refresh_token'],
    protected_resources: [pds.url],
  })
  for (const endpoint of [
    'authorization_endpoint',
    'token_endpoint',
    'revocation_endpoint',
    'pushed_authorization_request_endpoint',
    'jwks_uri',
  ])
    expect(body[endpoint]).toStartWith(`${pds.url}/oauth/`)
})

test('the published key is public, and the same after a restart', async () => {
  const keys = async () => (await request(`${pds.url}/oauth/jwks`)).body.keys
  const before = await keys()
  expect(before).toEqual([
    {
      kty: 'EC',
      crv: 'P-256',
      x: expect.any(String),
      y: expect.any(String),
      kid: expect.any(String),
      use: 'sig',
      alg: 'ES256',
    },
  ])
  await pds.restart()
  expect(await keys()).toEqual(before)
})
