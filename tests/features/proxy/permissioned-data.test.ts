/** A fence around drafts that are not served here: permissioned data. */
import { beforeAll, expect, test } from 'bun:test'
import { createAccount, xrpc } from '../../support/clients/account.ts'
import { basic, bearer } from '../../support/clients/http.ts'
import { loopbackClientId, OAuthClient } from '../../support/clients/oauth-client.ts'
import { ADMIN_TOKEN } from '../../support/servers/pds.ts'
import { startUpstream } from '../../support/servers/upstream.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'

let app: (nsid: string, init?: RequestInit) => Promise<{ status: number; body: any }>
const space = setUp(startUpstream)
const { pds } = useWorld({ config: () => ({ appview: { url: space.url, did: 'did:web:appview.test#bsky_appview' } }) })
const alice = setUp(() => createAccount(pds, 'alice'))
beforeAll(async () => {
  for (const fragment of ['atproto_space_host', 'bsky_appview', 'anything']) space.services[fragment] = space.url
  const scope = `atproto transition:generic rpc:*?aud=${space.did.replace('%', '%25')}%23anything rpc:com.atproto.space.getSpace?aud=*`
  const client = new OAuthClient(pds, loopbackClientId(scope))
  const { access_token } = await client.signIn({ identifier: alice.handle, password: alice.password }, { scope })
  app = (nsid, init = {}) => client.call(access_token, nsid, {}, init)
})

const methods = [
  'com.atproto.space.getSpace',
  'com.atproto.space.getSpace/',
  'com.atproto.simplespace.createSpace',
  'COM.atproto.Space.getSpace',
  'com.atproto.SIMPLESPACE.x',
  'com.atproto.space.a.b',
]

test('methods of the drafts are not passed on, whoever asks, wherever to', async () => {
  for (const method of methods) {
    for (const headers of [
      {},
      { 'atproto-proxy': `${space.did}#anything` },
      { 'atproto-proxy': `${space.did}#atproto_space_host` },
    ] as Record<string, string>[]) {
      for (const http of ['GET', 'POST']) {
        const asked = { method, headers, http }
        expect({
          asked,
          status: (await xrpc(pds, method, { method: http, headers: { ...headers, ...bearer(alice.accessJwt) } }))
            .status,
        }).toEqual({ asked, status: 501 })
        expect({ asked, status: (await app(method, { method: http, headers })).status }).toEqual({ asked, status: 501 })
      }
    }
  }
  for (const method of ['com.example.anything', 'app.bsky.feed.getTimeline'])
    expect(
      (await alice.call(method, { headers: { 'atproto-proxy': `${space.did}#atproto_space_host` } })).status,
    ).toBeGreaterThanOrEqual(400)
  expect(space.received).toEqual([])
  expect(
    (
      await alice.call('com.example.spaces.get', {
        headers: { ...bearer(alice.accessJwt), 'atproto-proxy': `${space.did}#anything` },
      })
    ).status,
  ).toBe(200)
})

test('no service token is made for them', async () => {
  const mint = (query: Record<string, string>) => `com.atproto.server.getServiceAuth?${new URLSearchParams(query)}`
  const refused: Record<string, string>[] = [
    { aud: space.did, lxm: 'com.atproto.space.getSpace' },
    { aud: space.did, lxm: 'com.atproto.simplespace.createSpace' },
    { aud: space.did, lxm: 'com.atproto.Space.getSpace' },
    { aud: space.did, lxm: 'com.atproto.space.getSpace/' },
    { aud: `${space.did}#anything`, lxm: 'com.atproto.space.getSpace' },
    { aud: `${space.did}#atproto_space_host` },
    { aud: `${space.did}#atproto_space_host`, lxm: 'com.example.anything' },
  ]
  for (const query of refused) {
    expect({ query, status: (await alice.call(mint(query))).status }).toEqual({ query, status: 400 })
    expect([400, 403]).toContain((await app(mint(query))).status)
  }
  expect((await alice.call(mint({ aud: space.did, lxm: 'com.example.spaces.get' }))).status).toBe(200)
})

test('a URI of a space passes where a lexicon asks for an at-uri, and is no record of anybody', async () => {
  const uri = `at://${alice.did}/space/com.example.forum/self/${alice.did}/com.example.thread/3jzfcijpj2z2a`
  const subject = { uri, cid: 'bafyreie5737gdxlw5i64vzichcalba3z2v5n6icifvx5xytvske7mr3hpm' }
  const record = { $type: 'app.bsky.feed.like', subject, createdAt: '2026-01-01T00:00:00Z' }
  expect(
    await alice.call('com.atproto.repo.createRecord', {
      json: { repo: alice.did, collection: 'app.bsky.feed.like', record },
    }),
  ).toMatchObject({ status: 200, body: { validationStatus: 'valid' } })
  const broken = { ...record, subject: { ...subject, uri: `${uri}/more` } }
  expect(
    await alice.call('com.atproto.repo.createRecord', {
      json: { repo: alice.did, collection: 'app.bsky.feed.like', record: broken },
    }),
  ).toMatchObject({
    status: 400,
    body: {
      message: expect.stringMatching(
        /^Invalid app.bsky.feed.like record: Invalid at-uri \(got ".*"\) at \$\.record\.subject\.uri$/,
      ),
    },
  })
  const operator = { headers: basic('admin', ADMIN_TOKEN) }
  expect((await xrpc(pds, `com.atproto.admin.getSubjectStatus?uri=${encodeURIComponent(uri)}`, operator)).status).toBe(
    400,
  )
})
