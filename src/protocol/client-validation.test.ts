import { expect, test } from 'bun:test'
import { clientDocumentUrl, discoverableClient, isRegistrable, loopbackClient } from './client-validation.ts'

const clientId = 'https://app.example.com/client/metadata.json'
const document = {
  client_id: clientId,
  client_name: 'An app',
  redirect_uris: ['https://app.example.com/callback'],
  grant_types: ['authorization_code', 'refresh_token'],
  response_types: ['code'],
  scope: 'atproto transition:generic',
  token_endpoint_auth_method: 'none',
  dpop_bound_access_tokens: true,
}
const key = {
  kty: 'EC',
  crv: 'P-256',
  kid: 'one',
  x: 'l8tFrhx-34tV3hRICRDY9zCkDlpBhF42UQUfWVAWBFs',
  y: '9VE4jf_Ok_o64zbTTlcuNJajHmt6v9TDVrU0CdvGRDA',
}
const withKey = {
  token_endpoint_auth_method: 'private_key_jwt',
  token_endpoint_auth_signing_alg: 'ES256',
  jwks: { keys: [key] },
}

test('a document becomes a client', () => {
  expect(discoverableClient(clientId, document)).toMatchObject({
    ok: true,
    client: { clientId, name: 'An app', mayRefresh: true, authentication: { method: 'none' } },
  })
  expect(discoverableClient(clientId, { ...document, ...withKey })).toMatchObject({
    ok: true,
    client: { authentication: { method: 'private_key_jwt', alg: 'ES256' } },
  })
  expect(discoverableClient(clientId, { ...document, grant_types: undefined })).toMatchObject({
    ok: true,
    client: { mayRefresh: false },
  })
  expect(discoverableClient(clientId, { ...document, client_uri: 'https://app.example.com/client' })).toMatchObject({
    ok: true,
  })
})

test('a long name is cut, and a long link left out', () => {
  const uri = `https://app.example.com/${'x'.repeat(2048)}`
  expect(
    discoverableClient(clientId, { ...document, client_name: 'x'.repeat(60_000), policy_uri: uri, tos_uri: uri }),
  ).toMatchObject({
    ok: true,
    client: { name: 'x'.repeat(256), policyUri: null, tosUri: null },
  })
})

test('a document with more values than a client needs is refused before it is examined', () => {
  const tooMany = { ok: false as const, reason: 'the document has more than 1000 values' }
  const deep = JSON.parse('['.repeat(30_000) + ']'.repeat(30_000)) as unknown
  for (const more of [
    { jwks: { keys: Array.from({ length: 21_000 }, () => ({})) } },
    { jwks: { keys: Array.from({ length: 20 }, () => ({ key_ops: Array.from({ length: 60 }, () => 0) })) } },
    { redirect_uris: Array.from({ length: 30_000 }, () => 0) },
    { other: deep },
    Object.fromEntries(Array.from({ length: 8000 }, (_, i) => [`k${i}`, 0])),
  ])
    expect(discoverableClient(clientId, { ...document, ...more })).toEqual(tooMany)
  const many = Array.from({ length: 100 }, (_, i) => `https://app.example.com/${i}`)
  expect(discoverableClient(clientId, { ...document, redirect_uris: many })).toMatchObject({
    ok: true,
    client: { redirectUris: many },
  })
})

test('each rule that a document breaks refuses it', () => {
  const broken: Record<string, unknown>[] = [
    { client_id: 'https://app.example.com/client/other.json' },
    { client_id: undefined },
    { redirect_uris: [] },
    { redirect_uris: [`https://app.example.com/${'x'.repeat(2048)}`] },
    { redirect_uris: ['https://app.example.com/callback', 'http://127.0.0.1/'] },
    { redirect_uris: ['javascript:alert(1)'] },
    { response_types: ['token'] },
    { grant_types: ['refresh_token'] },
    { grant_types: ['authorization_code', 'authorization_code'] },
    { grant_types: ['authorization_code', 'implicit'] },
    { scope: undefined },
    { scope: 'transition:generic' },
    { scope: 'atproto atproto' },
    { token_endpoint_auth_method: undefined },
    { token_endpoint_auth_method: 'client_secret_post' },
    { token_endpoint_auth_signing_alg: 'ES256' },
    { ...withKey, jwks: undefined },
    { ...withKey, jwks: { keys: [] } },
    { ...withKey, jwks_uri: 'https://app.example.com/jwks' },
    { ...withKey, jwks: undefined, jwks_uri: 'http://127.0.0.1/jwks' },
    { ...withKey, jwks: undefined, jwks_uri: 'https://app.example.com:8443/jwks' },
    { ...withKey, jwks: undefined, jwks_uri: 'https://203.0.113.7/jwks' },
    { ...withKey, token_endpoint_auth_signing_alg: undefined },
    { ...withKey, token_endpoint_auth_signing_alg: 'HS256' },
    { ...withKey, application_type: 'native' },
    { dpop_bound_access_tokens: undefined },
    { dpop_bound_access_tokens: false },
    { subject_type: 'pairwise' },
    { default_max_age: 60 },
    { id_token_signed_response_alg: 'ES256' },
    { tls_client_certificate_bound_access_tokens: true },
    { client_uri: 'https://other.example.com/client' },
    { client_uri: 'https://app.example.com/elsewhere' },
    { client_uri: 'https://app.example.com/cli' },
    { logo_uri: 'javascript:alert(1)' },
  ]
  for (const changes of broken)
    expect({ changes, outcome: discoverableClient(clientId, { ...document, ...changes }) }).toMatchObject({
      changes,
      outcome: { ok: false },
    })
  for (const none of [null, 'text', [], 7]) expect(discoverableClient(clientId, none)).toMatchObject({ ok: false })
})

test('a client id is a canonical https URL with a path on a public host', () => {
  expect(clientDocumentUrl(clientId)?.href).toBe(clientId)
  expect(clientDocumentUrl('https://app.example.com/metadata?v=1')).not.toBeNull()
  for (const id of [
    'http://app.example.com/metadata.json',
    'https://pds.example.com/xrpc/com.atproto.sync.getBlob?did=did:web:app.example.com&cid=bafk',
    'https://pds.example.com/%78rpc/com.atproto.sync.getBlob?did=did:web:app.example.com&cid=bafk',
    'https://pds.example.com//XRPC/com.atproto.sync.getBlob?did=did:web:app.example.com&cid=bafk',
    'https://app.example.com',
    'https://app.example.com/',
    'https://app.example.com/metadata/',
    'https://app.example.com/../metadata',
    'https://app.example.com/metadata#x',
    'https://user@app.example.com/metadata',
    'https://app.example.com:8443/metadata',
    'https://203.0.113.7/metadata',
    'https://[2001:db8::1]/metadata',
    'https://localhost/metadata',
    'https://metadata.google.internal/metadata',
    'https://printer.local/metadata',
    'ftp://app.example.com/metadata',
    'app',
    `https://app.example.com/${'a'.repeat(2048)}`,
  ])
    expect([id, clientDocumentUrl(id)]).toEqual([id, null])
})

test('a loopback client is described by its id', () => {
  expect(loopbackClient('http://localhost')).toMatchObject({
    ok: true,
    client: {
      name: null,
      scopes: ['atproto'],
      redirectUris: ['http://127.0.0.1/', 'http://[::1]/'],
      applicationType: 'native',
      mayRefresh: true,
    },
  })
  const id =
    'http://localhost/?scope=atproto%20transition%3Ageneric&redirect_uri=http%3A%2F%2F127.0.0.1%3A8080%2Fcallback'
  expect(loopbackClient(id)).toMatchObject({
    ok: true,
    client: { scopes: ['atproto', 'transition:generic'], redirectUris: ['http://127.0.0.1:8080/callback'] },
  })
  for (const bad of [
    'http://localhost:8080',
    'http://localhost/path',
    'http://localhost#x',
    'http://localhost?scope=atproto&scope=atproto',
    'http://localhost?scope=transition%3Ageneric',
    'http://localhost?scope=atproto%20atproto',
    'http://localhost?name=x',
    'http://localhost?redirect_uri=http%3A%2F%2Flocalhost%2F',
    'http://localhost?redirect_uri=https%3A%2F%2Fapp.example.com%2F',
    'http://localhost.example.com',
  ])
    expect([bad, loopbackClient(bad).ok]).toEqual([bad, false])
})

test('what a client may register depends on its kind', () => {
  const rows: [uri: string, web: boolean, native: boolean][] = [
    ['https://app.example.com/callback', true, true],
    ['https://127.0.0.1/callback', false, false],
    ['https://localhost/callback', false, false],
    ['https://intranet/callback', false, false],
    ['https://printer.local/callback', false, false],
    ['https://user:secret@app.example.com/callback', false, false],
    ['http://127.0.0.1/callback', false, true],
    ['http://127.0.0.1:8080/callback', false, true],
    ['http://[::1]/callback', false, true],
    ['http://localhost/callback', false, false],
    ['http://app.example.com/callback', false, false],
    ['com.example.app:/callback', false, true],
    ['com.example.app://callback', false, false],
    ['com.example.other:/callback', false, false],
    ['myapp:/callback', false, false],
    ['javascript:alert(1)', false, false],
    ['data:text/html,hello', false, false],
    ['not a url', false, false],
  ]
  for (const [uri, web, native] of rows)
    expect([
      uri,
      isRegistrable(uri, 'web', 'app.example.com'),
      isRegistrable(uri, 'native', 'app.example.com'),
    ]).toEqual([uri, web, native])
  expect(isRegistrable('com.example.app:/callback', 'native', null)).toBe(false)
})
