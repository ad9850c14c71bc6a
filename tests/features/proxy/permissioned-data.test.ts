/** A fence around drafts that are not served here: permissioned data. */
import { beforeAll, expect, test } from 'bun:test'
import { createAccount, xrpc } from '../../support/clients/account.ts'
import { basic, bearer, request, type Answer } from '../../support/clients/http.ts'
import { loopbackClientId, OAuthClient } from '../../support/clients/oauth-client.ts'
import { registerAgent, withAgents } from '../../support/clients/registered-agent.ts'
import { ADMIN_TOKEN } from '../../support/servers/pds.ts'
import { startUpstream } from '../../support/servers/upstream.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'

/** All kinds of credentials that speak for the account, with as much as they can be given. */
const callers: Record<string, (nsid: string, init?: Parameters<typeof request>[1]) => Promise<Answer>> = {}
const space = setUp(startUpstream)
/** What may be granted at most, and more. */
const everything = (): string[] => [
  'atproto',
  'transition:generic',
  `rpc:*?aud=${space.did.replace('%', '%25')}%23anything`,
  'rpc:com.atproto.space.getSpace?aud=*',
  'rpc:com.atproto.simplespace.createSpace?aud=*',
]
const { pds } = useWorld({
  config: () => ({
    agentAuth: { ...withAgents, grantedScopes: everything() },
    rateLimit: { enabled: false },
    appview: { url: space.url, did: `${space.did}#bsky_appview` },
  }),
})
const alice = setUp(() => createAccount(pds, 'alice'))
beforeAll(async () => {
  for (const fragment of ['atproto_space_host', 'bsky_appview', 'anything']) space.services[fragment] = space.url
  const scope = everything().join(' ')
  const client = new OAuthClient(pds, loopbackClientId(scope))
  const { access_token } = await client.signIn({ identifier: alice.handle, password: alice.password }, { scope })
  const { body: appPassword } = await alice.call('com.atproto.server.createAppPassword', {
    json: { name: 'app', privileged: true },
  })
  const { body: session } = await xrpc(pds, 'com.atproto.server.createSession', {
    json: { identifier: alice.handle, password: appPassword.password },
  })
  const agent = await registerAgent(pds, alice, { scopes: everything() })
  callers['a session'] = alice.call
  callers['an app password'] = (nsid, { headers, ...init } = {}) =>
    xrpc(pds, nsid, { ...init, headers: { ...headers, ...bearer(session.accessJwt) } })
  callers['an app'] = (nsid, init = {}) => client.call(access_token, nsid, {}, init)
  callers['an agent'] = agent.call
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
        for (const [caller, call] of Object.entries(callers)) {
          const asked = { caller, method, headers, http }
          expect({ asked, status: (await call(method, { method: http, headers })).status }).toEqual({
            asked,
            status: 501,
          })
        }
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
        headers: { 'atproto-proxy': `${space.did}#anything` },
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
    for (const [caller, call] of Object.entries(callers)) {
      const { status, body } = await call(mint(query))
      expect({ caller, query, status, refused: [400, 403].includes(status), token: body.token }).toEqual({
        caller,
        query,
        status,
        refused: true,
        token: undefined,
      })
    }
  }
  expect((await alice.call(mint({ aud: space.did, lxm: 'com.example.spaces.get' }))).status).toBe(200)
})

const CID = 'bafyreie5737gdxlw5i64vzichcalba3z2v5n6icifvx5xytvske7mr3hpm'
/** A key that occurs nowhere else. */
const SENTINEL = 'only-for-members'
const inSpace = () =>
  `at://${alice.did}/space/com.example.forum/${SENTINEL}/${alice.did}/com.example.thread/3jzfcijpj2z2a`

test('a URI of a space passes where a lexicon asks for an at-uri, and is no record of anybody', async () => {
  const uri = inSpace()
  const subject = { uri, cid: CID }
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
})

test('a URI of a space is passed on to no service of the public network', async () => {
  const record = inSpace()
  const whole = record.split('/').slice(0, 6).join('/')
  space.received.length = 0
  for (const uri of [whole, record, `${record}#x`, whole.replace('space', 'Space'), whole.replace('at:', 'AT:')]) {
    const encoded = encodeURIComponent(uri)
    for (const path of [
      `app.bsky.feed.getPosts?uris=${encoded}`,
      `app.bsky.feed.getPosts?uris=at%3A%2F%2F${alice.did}%2Fapp.bsky.feed.post%2Fx&uris=${encoded.replace('s', '%73')}`,
      `app.bsky.feed.getPostThread?uri=${encoded}`,
      `app.bsky.feed.getFeed?feed=${encoded}`,
      `APP.bsky.feed.getPosts?uris=${encoded}`,
      `com.atproto.label.queryLabels?uriPatterns=${encoded}`,
      `chat.bsky.convo.getLog?cursor=${encoded}`,
    ]) {
      for (const headers of [{}, { 'atproto-proxy': `${space.did}#anything` }] as Record<string, string>[]) {
        const { status } = await alice.call(path, { headers })
        expect([path, headers, status]).toEqual([path, headers, 400])
      }
    }
  }
  const subject = { $type: 'com.atproto.repo.strongRef', uri: inSpace(), cid: CID }
  expect(
    await alice.call('com.atproto.moderation.createReport', {
      json: { reasonType: 'com.atproto.moderation.defs#reasonSpam', subject },
    }),
  ).toMatchObject({ status: 400, body: { error: 'InvalidRequest' } })
  expect(space.received).toEqual([])
  // A service that the app itself has chosen may know spaces.
  const thread = `com.example.threads.get?uri=${encodeURIComponent(inSpace())}`
  expect((await alice.call(thread, { headers: { 'atproto-proxy': `${space.did}#anything` } })).status).toBe(200)
  expect(space.received).toHaveLength(1)
  expect((await alice.call(`app.bsky.feed.getPosts?uris=at://${alice.did}/app.bsky.feed.post/space`)).status).toBe(200)
})

test('no body names a space to a service of the public network, however it is written', async () => {
  space.received.length = 0
  const send = (nsid: string, text: string, headers: Record<string, string> = {}) =>
    alice.call(nsid, {
      method: 'POST',
      body: headers['content-encoding'] ? Bun.gzipSync(Buffer.from(text)) : Buffer.from(text),
      headers: { 'content-type': 'application/json', ...headers },
    })
  const uri = inSpace()
  const plain = JSON.stringify({ uri, cid: CID })
  const bodies: Record<string, string> = {
    plain,
    'slashes escaped': plain.replaceAll('/', String.raw`\/`),
    'letters escaped': plain.replaceAll('s', String.raw`\u0073`),
    'in upper case': plain.replace('at:', 'AT:').replace('/space/', '/Space/'),
    'as a name': JSON.stringify({ [uri]: 1 }),
    'deep inside': JSON.stringify({ a: [{ b: [[uri]] }] }),
    'hidden by another of its name': `{"uri":${JSON.stringify(uri)},"uri":"at://${alice.did}/app.bsky.feed.post/a"}`,
    'not JSON': `${plain},,`,
    'after spaces': JSON.stringify({ uri: ` \n${uri}` }),
  }
  for (const nsid of ['app.bsky.bookmark.createBookmark', 'chat.bsky.convo.sendMessage', 'APP.bsky.graph.muteThread'])
    for (const [how, text] of Object.entries(bodies))
      for (const headers of [{}, { 'atproto-proxy': `${space.did}#anything` }] as Record<string, string>[]) {
        const { status } = await send(nsid, text, headers)
        expect([nsid, how, status]).toEqual([nsid, how, 400])
      }
  expect((await send('app.bsky.bookmark.createBookmark', plain, { 'content-encoding': 'gzip' })).status).toBe(400)
  expect((await send('app.bsky.bookmark.createBookmark', `["${'x'.repeat(1024 ** 2)}"]`)).status).toBe(413)
  expect(space.received).toEqual([])

  const post = JSON.stringify({ uri: `at://${alice.did}/app.bsky.feed.post/space`, text: 'a space: at://x /space/' })
  for (const headers of [{}, { 'content-encoding': 'gzip' }] as Record<string, string>[])
    expect((await send('app.bsky.bookmark.createBookmark', post, headers)).body).toMatchObject({ body: post })
  const chosen = { 'atproto-proxy': `${space.did}#anything` }
  expect((await send('com.example.threads.read', plain, chosen)).status).toBe(200)
})

test('what this server serves itself and passes on names no space either', async () => {
  await using appview = startUpstream()
  appview.services['bsky_appview'] = appview.url
  const headers = { 'atproto-proxy': `${appview.did}#bsky_appview` }
  const saved = (value: string) => ({
    preferences: [
      { $type: 'app.bsky.actor.defs#savedFeedsPrefV2', items: [{ id: 'a', type: 'feed', value, pinned: true }] },
    ],
  })
  const put = (value: string) => alice.call('app.bsky.actor.putPreferences', { json: saved(value), headers })
  expect((await put(inSpace())).status).toBe(400)
  space.received.length = 0
  const elsewhere = 'repo=did:plc:aaaaaaaaaaaaaaaaaaaaaaaa&collection=app.bsky.feed.post&rkey=a'
  const get = (more: string) => request(`${pds.url}/xrpc/com.atproto.repo.getRecord?${elsewhere}${more}`)
  expect((await get(`&uri=${encodeURIComponent(inSpace())}`)).status).toBe(400)
  expect([appview.received, space.received]).toEqual([[], []])
  expect([(await put(`at://${alice.did}/app.bsky.feed.generator/a`)).status, (await get('')).status]).toEqual([
    200, 200,
  ])
})

test('an operator cannot take a record of a space for a public one', async () => {
  const operator = { headers: basic('admin', ADMIN_TOKEN) }
  const subject = { $type: 'com.atproto.repo.strongRef', uri: inSpace(), cid: CID }
  for (const answer of [
    await xrpc(pds, `com.atproto.admin.getSubjectStatus?uri=${encodeURIComponent(inSpace())}`, operator),
    await xrpc(pds, 'com.atproto.admin.updateSubjectStatus', {
      ...operator,
      json: { subject, takedown: { applied: true } },
    }),
  ])
    expect(answer).toMatchObject({ status: 400, body: { message: expect.not.stringContaining(SENTINEL) } })
})

test('the log and the metrics name no space', async () => {
  const { body: metrics } = await request(`${pds.url}/metrics`, { headers: basic('admin', ADMIN_TOKEN) })
  expect(pds.log.length).toBeGreaterThan(10)
  expect(metrics).toContain('proxy_requests_total')
  expect(JSON.stringify(pds.log) + metrics).not.toContain(SENTINEL)
})
