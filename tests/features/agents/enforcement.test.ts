/** What an agent may do with what it was granted, method by method. */
import { beforeAll, describe, expect, test } from 'bun:test'
import { createAccount } from '../../support/clients/account.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { tokenClaims } from '../../support/servers/upstream.ts'
import {
  createPost,
  DEFAULT_SCOPES,
  eventsOf,
  post,
  registerAgent,
  tokenFor,
  withAgents,
  type RegisteredAgent,
} from '../../support/clients/registered-agent.ts'
import { startPds } from '../../support/servers/pds.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'

const APPVIEW = 'did:web:appview.test#bsky_appview'
const CHAT = 'did:web:chat.test#bsky_chat'
const rpc = (lxm: string, aud: string) => `rpc:${lxm}?aud=${aud.replace('#', '%23')}`
const [ONE, TWO, SECRET] = ['3jzfcijpj2z2a', '3jzfcijpj2z2b', '3jzfcijpj2z2c']
const READER = 'did:web:reader.test#reader'
const PREFERENCES = [rpc('app.bsky.actor.getPreferences', APPVIEW), rpc('app.bsky.actor.putPreferences', APPVIEW)]

/** What this operator allows. Each agent has some of it. */
const ALLOWED = [
  ...DEFAULT_SCOPES,
  'account:email',
  'blob:image/*',
  'com.atproto.access',
  'repo:*?action=delete',
  'repo:app.bsky.feed.like',
  'rpc:com.atproto.repo.uploadBlob?aud=*',
  'transition:generic',
  rpc('app.bsky.feed.sendInteractions', APPVIEW),
  rpc('chat.bsky.convo.listConvos', CHAT),
  rpc('*', READER),
  ...PREFERENCES,
]

let agent: RegisteredAgent
const { pds, appview, chat } = useWorld({
  appview: true,
  chat: true,
  config: {
    agentAuth: { ...withAgents, grantedScopes: ALLOWED },
    rateLimit: { enabled: false },
  },
})
const alice = setUp(() => createAccount(pds, 'alice'))
beforeAll(async () => {
  agent = await registerAgent(pds, alice)
})

const granted = (...scopes: string[]) => registerAgent(pds, alice, { scopes: ['atproto', ...scopes] })
const insufficient = (message: string) => ({
  status: 403,
  body: { error: 'InsufficientScope', message, error_description: message },
})
const missing = (scope: string) => insufficient(`Missing required scope "${scope}"`)
const write = (action: string, rest: object) => ({ $type: `com.atproto.repo.applyWrites#${action}`, ...rest })

describe('writes', () => {
  const collection = 'app.bsky.feed.post'

  test('by default an agent creates and updates, and deletes nothing', async () => {
    const { did } = alice
    expect(await agent.call('com.atproto.repo.createRecord', createPost(did))).toMatchObject({ status: 200 })
    const put = { json: { repo: did, collection, rkey: ONE, record: post('one') } }
    expect(await agent.call('com.atproto.repo.putRecord', put)).toMatchObject({ status: 200 })
    const deletes = [
      ['com.atproto.repo.deleteRecord', { repo: did, collection, rkey: ONE }],
      ['com.atproto.repo.applyWrites', { repo: did, writes: [write('delete', { collection, rkey: ONE })] }],
      // All or none.
      [
        'com.atproto.repo.applyWrites',
        {
          repo: did,
          writes: [
            write('create', { collection, rkey: TWO, value: post('two') }),
            write('delete', { collection, rkey: ONE }),
          ],
        },
      ],
    ] as const
    for (const [nsid, json] of deletes)
      expect(await agent.call(nsid, { json })).toMatchObject(missing(`repo:${collection}?action=delete`))
    expect(
      await alice.call(`com.atproto.repo.getRecord?repo=${did}&collection=${collection}&rkey=${ONE}`),
    ).toMatchObject({ status: 200 })
    expect(
      await alice.call(`com.atproto.repo.getRecord?repo=${did}&collection=${collection}&rkey=${TWO}`),
    ).toMatchObject({ status: 400 })
  })

  test('an agent that may delete, deletes', async () => {
    const cleaner = await granted('repo:*?action=delete')
    const json = { repo: alice.did, collection, rkey: ONE }
    expect(await cleaner.call('com.atproto.repo.deleteRecord', { json })).toMatchObject({
      status: 200,
      body: { commit: {} },
    })
    expect(await cleaner.call('com.atproto.repo.createRecord', createPost(alice.did))).toMatchObject({ status: 403 })
  })

  test('a scope for one collection is good for no other', async () => {
    const liker = await granted('repo:app.bsky.feed.like')
    expect(await liker.call('com.atproto.repo.createRecord', createPost(alice.did))).toMatchObject(
      missing('repo:app.bsky.feed.post?action=create'),
    )
  })

  test('an agent writes to no repository but that of its account', async () => {
    const bob = await createAccount(pds, 'bob')
    expect(await agent.call('com.atproto.repo.createRecord', createPost(bob.did))).toMatchObject({ status: 401 })
  })

  test('every commit is on record, in counts and collections, without keys or contents', async () => {
    const author = await granted('repo:*?action=create&action=update', 'repo:*?action=delete')
    const { did } = alice
    const { body } = await author.call('com.atproto.repo.applyWrites', {
      json: {
        repo: did,
        writes: [
          write('create', { collection, rkey: SECRET, value: post('a secret text') }),
          write('create', {
            collection: 'app.bsky.feed.generator.unknown',
            rkey: 'x',
            value: { $type: 'app.bsky.feed.generator.unknown' },
          }),
        ],
        validate: false,
      },
    })
    const updated = await author.call('com.atproto.repo.putRecord', {
      json: { repo: did, collection, rkey: SECRET, record: post('another') },
    })
    const deleted = await author.call('com.atproto.repo.deleteRecord', {
      json: { repo: did, collection, rkey: SECRET },
    })
    const events = await eventsOf(pds, author)
    const counts = { creates: 0, updates: 0, deletes: 0 }
    const collections = [collection]
    expect(events).toEqual(
      [
        { ...counts, creates: 2, collections: ['app.bsky.feed.generator.unknown', collection], rev: body.commit.rev },
        { ...counts, updates: 1, collections, rev: updated.body.commit.rev },
        { ...counts, deletes: 1, collections, rev: deleted.body.commit.rev },
      ].map((detail) => ({ type: 'repo_write' as const, did: did as never, detail })),
    )
    expect(JSON.stringify(events)).not.toMatch(/secret|3jzfcijpj2z2c/)
  })

  test('a like that replaces another is on record as both changes, and one that changes nothing is not', async () => {
    const liker = await granted('repo:*?action=create&action=update')
    const subject = {
      uri: `at://${alice.did}/app.bsky.feed.post/3jzfcijpj2z2a`,
      cid: 'bafyreie5737gdxlw5i64vzichcalba3z2v5n6icifvx5xytvske7mr3hpm',
    }
    const record = { $type: 'app.bsky.feed.like', subject, createdAt: '2026-01-01T00:00:00.000Z' }
    const like = { repo: alice.did, collection: 'app.bsky.feed.like', record }
    await liker.call('com.atproto.repo.createRecord', { json: like })
    await liker.call('com.atproto.repo.createRecord', { json: like })
    const put = { ...like, rkey: ONE, record }
    await liker.call('com.atproto.repo.putRecord', { json: put })
    await liker.call('com.atproto.repo.putRecord', { json: put })
    expect((await eventsOf(pds, liker)).map(({ detail }) => [detail!['creates'], detail!['deletes']])).toEqual([
      [1, 0],
      [1, 1],
      [1, 0],
    ])
  })

  test('what fails or is written by people is not on record', async () => {
    const clumsy = await granted('repo:*?action=create&action=update')
    const failed = await clumsy.call('com.atproto.repo.putRecord', {
      json: {
        repo: alice.did,
        collection,
        rkey: ONE,
        record: post('x'),
        swapCommit: 'bafyreie5737gdxlw5i64vzichcalba3z2v5n6icifvx5xytvske7mr3hpm',
      },
    })
    expect(failed).toMatchObject({ status: 400, body: { error: 'InvalidSwap' } })
    await alice.call('com.atproto.repo.createRecord', createPost(alice.did))
    expect(await eventsOf(pds, clumsy)).toEqual([])
  })
})

describe('blobs', () => {
  const upload = (by: RegisteredAgent, type: string, body: string) =>
    by.call('com.atproto.repo.uploadBlob', { method: 'POST', body, headers: { 'content-type': type } })

  test('an upload is on record before it is answered', async () => {
    const uploader = await granted('blob:*/*')
    const { status, body } = await upload(uploader, 'text/plain', 'some text')
    expect(status).toBe(200)
    const { ref, mimeType, size } = body.blob
    const event = { type: 'blob_upload', did: alice.did, detail: { cid: ref.$link, mime_type: mimeType, size } }
    expect(await eventsOf(pds, uploader)).toEqual([event] as never)
    // The account owns it already; the agent did it nevertheless.
    await upload(uploader, 'text/plain', 'some text')
    expect(await eventsOf(pds, uploader)).toEqual([event, event] as never)
  })

  test('the type has to be granted, the announced and the detected one', async () => {
    const painter = await granted('blob:image/*')
    expect(await upload(painter, 'text/plain', 'text')).toMatchObject(missing('blob:text/plain'))
    const pdf = await upload(painter, 'image/png', '%PDF-1.7 pretends to be an image')
    expect(pdf.status === 200 ? pdf.body.blob.mimeType : pdf.body.error).toMatch(/^image\/|InsufficientScope/)
    const none = await granted('repo:*?action=create&action=update')
    expect(await upload(none, 'image/png', 'x')).toMatchObject({ status: 403, body: { error: 'InsufficientScope' } })
    expect(await eventsOf(pds, none)).toEqual([])
  })
})

describe('the account', () => {
  test('an agent learns who it acts for, and the address only with the scope for it', async () => {
    const { status, body } = await agent.call('com.atproto.server.getSession')
    expect({ status, did: body.did, handle: body.handle, active: body.active }).toEqual({
      status: 200,
      did: alice.did,
      handle: 'alice.test',
      active: true,
    })
    expect(Object.keys(body).filter((name) => name.startsWith('email'))).toEqual([])
    const mailer = await granted('account:email')
    expect((await mailer.call('com.atproto.server.getSession')).body).toMatchObject({
      email: alice.email,
      emailConfirmed: false,
    })
  })

  test('an agent counts what the account has, and what it lacks', async () => {
    const bare = await granted()
    const [asAgent, asOwner] = [
      await bare.call('com.atproto.server.checkAccountStatus'),
      await alice.call('com.atproto.server.checkAccountStatus'),
    ]
    expect(asAgent).toMatchObject({ status: 200, body: { activated: true, validDid: true } })
    expect(asAgent.body).toEqual(asOwner.body)
  })

  test('a full-access scope does not make an agent the owner', async () => {
    const reaching = await granted('com.atproto.access', 'transition:generic')
    for (const [nsid, json] of [
      ['com.atproto.server.createAppPassword', { name: 'mine' }],
      ['com.atproto.identity.updateHandle', { handle: 'mallory.test' }],
      ['com.atproto.server.deactivateAccount', {}],
      ['com.atproto.server.requestAccountDelete', undefined],
      ['com.atproto.identity.requestPlcOperationSignature', undefined],
    ] as const)
      expect(await reaching.call(nsid, { method: 'POST', ...(json && { json }) })).toMatchObject(
        insufficient('Agents may not call this endpoint'),
      )
    expect(await alice.call('com.atproto.server.listAppPasswords')).toMatchObject({ body: { passwords: [] } })
  })

  test('preferences need the scope of their method, and never show or take the birth date', async () => {
    const personal = { $type: 'app.bsky.actor.defs#personalDetailsPref', birthDate: '1990-01-01T00:00:00.000Z' }
    const adult = { $type: 'app.bsky.actor.defs#adultContentPref', enabled: true }
    await alice.call('app.bsky.actor.putPreferences', { json: { preferences: [personal, adult] } })
    expect(await agent.call('app.bsky.actor.getPreferences')).toMatchObject({
      status: 403,
      body: { error: 'InsufficientScope' },
    })
    expect(await agent.call('app.bsky.actor.putPreferences', { json: { preferences: [] } })).toMatchObject({
      status: 403,
    })
    const tuner = await granted(...PREFERENCES)
    const { body } = await tuner.call('app.bsky.actor.getPreferences')
    expect(body.preferences.map(({ $type }: { $type: string }) => $type)).toContain(adult.$type)
    expect(JSON.stringify(body)).not.toContain('1990')
    expect(await tuner.call('app.bsky.actor.putPreferences', { json: { preferences: [personal] } })).toMatchObject({
      status: 400,
    })
    expect(await tuner.call('app.bsky.actor.putPreferences', { json: { preferences: [] } })).toMatchObject({
      status: 200,
    })
    expect((await alice.call('app.bsky.actor.getPreferences')).body.preferences).toContainEqual(personal)
  })
})

describe('other services', () => {
  const reads = [
    'app.bsky.feed.getTimeline',
    'app.bsky.graph.getFollows?actor=alice.test',
    'app.bsky.notification.listNotifications',
    'app.bsky.notification.getUnreadCount',
    'app.bsky.graph.getMutes',
    'app.bsky.bookmark.getBookmarks',
    'app.bsky.feed.searchPosts?q=x',
  ]
  test.each(reads)('%s of the configured AppView needs no scope', async (path) => {
    expect((await agent.call(path)).status).toBe(200)
    expect(tokenClaims(appview.received[0]!)).toMatchObject({ iss: alice.did, lxm: path.replace(/\?.*/, '') })
  })

  const privateReads = [
    'app.bsky.notification.listNotifications',
    'app.bsky.notification.GetUnreadCount',
    'app.bsky.bookmark.getBookmarks',
    'app.bsky.graph.getMutes',
    'app.bsky.graph.getListMutes',
    'app.bsky.draft.getDrafts',
    'app.bsky.ageassurance.getState',
    'app.bsky.unspecced.getAgeAssuranceState',
    'app.bsky.contact.getMatches',
  ]
  test.each(privateReads)(
    '%s is refused to an agent whose owner does not let it read privately, whatever its scopes',
    async (nsid) => {
      const wide = [rpc('*', READER), 'transition:generic']
      const reserved = await registerAgent(pds, alice, { scopes: ['atproto', ...wide], privateReads: false })
      const refusal = insufficient('The account holder does not let this agent read what only the account sees')
      expect(await reserved.call(nsid)).toMatchObject(refusal)
      expect(await reserved.call(nsid, { headers: { 'atproto-proxy': APPVIEW } })).toMatchObject(refusal)
      expect(await reserved.call(nsid, { headers: { 'atproto-proxy': READER } })).toMatchObject(refusal)
      expect(await reserved.call(nsid, { method: 'HEAD' })).toMatchObject({ status: 403 })
      expect(await reserved.call(nsid, { json: {} })).toMatchObject(refusal)
      const query = new URLSearchParams({ aud: READER, lxm: nsid })
      expect(await reserved.call(`com.atproto.server.getServiceAuth?${query}`)).toMatchObject(refusal)
      expect(appview.received).toEqual([])
      expect((await agent.call(nsid)).status).toBe(200)
      expect((await reserved.call('app.bsky.feed.getTimeline')).status).toBe(200)
    },
  )

  test('what an agent writes among what only the account sees is a matter of its scopes', async () => {
    const marker = { scopes: ['atproto', 'transition:generic'], privateReads: false }
    const json = {
      uri: `at://${alice.did}/app.bsky.feed.post/${ONE}`,
      cid: 'bafyreie5737gdxlw5i64vzichcalba3z2v5n6icifvx5xytvske7mr3hpm',
    }
    expect(
      (await (await registerAgent(pds, alice, marker)).call('app.bsky.bookmark.createBookmark', { json })).status,
    ).toBe(200)
  })

  test.each([
    ['another AppView', 'app.bsky.graph.getFollows', 'did:web:other.test#bsky_appview'],
    ['the AppView by its name', 'app.bsky.graph.getFollows', APPVIEW],
    ['another service', 'com.example.anything', CHAT],
  ])('%s needs a scope', async (_, nsid, service) => {
    const answer = await agent.call(nsid, { headers: { 'atproto-proxy': service } })
    expect(answer).toMatchObject(missing(rpc(nsid, service)))
    expect([appview.received.length, chat.received.length]).toEqual([0, 0])
  })

  test.each([
    ['POST', 'app.bsky.graph.muteActor'],
    ['POST', 'app.bsky.feed.sendInteractions'],
    ['GET', 'chat.bsky.convo.listConvos'],
    ['GET', 'com.atproto.label.queryLabels'],
    ['GET', 'app.bsky.actor.GetPreferences'],
    ['POST', 'com.atproto.moderation.createReport'],
  ])('%s %s needs a scope', async (method, nsid) => {
    const json = {
      reasonType: 'com.atproto.moderation.defs#reasonSpam',
      subject: { $type: 'com.atproto.admin.defs#repoRef', did: alice.did },
    }
    const answer = await agent.call(nsid, method === 'POST' ? { json } : {})
    expect(answer).toMatchObject({ status: 403, body: { error: 'InsufficientScope' } })
    expect([appview.received.length, chat.received.length]).toEqual([0, 0])
  })

  test('with its scope, a method is called', async () => {
    const feeder = await granted(
      rpc('app.bsky.feed.sendInteractions', APPVIEW),
      rpc('chat.bsky.convo.listConvos', CHAT),
    )
    expect((await feeder.call('app.bsky.feed.sendInteractions', { json: { interactions: [] } })).status).toBe(200)
    expect((await feeder.call('chat.bsky.convo.listConvos')).status).toBe(200)
    expect(await feeder.call('chat.bsky.convo.getLog')).toMatchObject({ status: 403 })
  })

  test('a device is never registered for push: it would go on hearing of the account after the agent has ended', async () => {
    const wide = await granted('transition:generic')
    const json = { serviceDid: 'did:web:appview.test', token: 't', platform: 'ios', appId: 'x' }
    expect(await wide.call('app.bsky.notification.registerPush', { json })).toMatchObject(
      insufficient('Agents may not call this endpoint'),
    )
  })

  const serviceAuth = (by: RegisteredAgent, query: Record<string, string>) =>
    by.call(`com.atproto.server.getServiceAuth?${new URLSearchParams({ aud: READER, ...query })}`)

  test('a service token needs a scope, is for one method, and lives for a minute', async () => {
    expect(await serviceAuth(agent, { lxm: 'com.example.read' })).toMatchObject(
      missing(rpc('com.example.read', READER)),
    )
    const caller = await granted(rpc('*', READER))
    const { status, body } = await serviceAuth(caller, { lxm: 'com.example.read' })
    expect(status).toBe(200)
    const claims = JSON.parse(Buffer.from(body.token.split('.')[1], 'base64url').toString())
    expect(claims).toMatchObject({ iss: alice.did, aud: READER, lxm: 'com.example.read' })
    expect(claims.exp - claims.iat).toBe(60)
    const later = String(Math.floor(pds.clock.now() / 1000) + 61)
    expect(await serviceAuth(caller, { lxm: 'com.example.read', exp: later })).toMatchObject({
      status: 400,
      body: { error: 'BadExpiration' },
    })
    expect(await serviceAuth(caller, {})).toMatchObject({ status: 400, body: { error: 'InvalidRequest' } })
  })

  test.each([
    'com.atproto.server.createAccount',
    'com.atproto.server.createAppPassword',
    'com.atproto.server.deleteAccount',
    'com.atproto.server.CreateAccount',
    'com.atproto.identity.signPlcOperation',
    'com.atproto.identity.submitPlcOperation',
    'com.atproto.identity.updateHandle',
    'com.atproto.repo.importRepo',
    'com.atproto.admin.sendEmail',
  ])('no service token for %s, whatever the scope', async (lxm) => {
    const caller = await granted(rpc('*', READER))
    expect(await serviceAuth(caller, { lxm })).toMatchObject({ status: 400, body: { error: 'InvalidRequest' } })
  })

  test('no service token for this server itself, which would not know the agent behind it', async () => {
    const { serverDid } = pds.ctx.config
    const caller = await granted('transition:generic', 'rpc:com.atproto.repo.uploadBlob?aud=*')
    for (const aud of [serverDid, `${serverDid}#atproto_pds`])
      expect(await serviceAuth(caller, { aud, lxm: 'com.atproto.repo.uploadBlob' })).toMatchObject({
        status: 400,
        body: { error: 'InvalidRequest' },
      })
  })
})

describe('tokens', () => {
  test('the scheme has to be Bearer, and a proof does not help', async () => {
    const answer = await request(`${pds.url}/xrpc/com.atproto.server.getSession`, {
      headers: { authorization: `DPoP ${agent.token}` },
    })
    expect(answer.status).toBe(401)
  })

  test('a token ends after five minutes', async () => {
    const late = await registerAgent(pds, alice)
    // Its times are whole seconds, rounded down.
    pds.clock.advance({ secs: 298 })
    expect((await late.call('com.atproto.server.getSession')).status).toBe(200)
    pds.clock.advance({ secs: 2 })
    expect(await late.call('com.atproto.server.getSession')).toMatchObject({
      status: 401,
      body: { error: 'ExpiredToken' },
    })
  })

  test('a token that was changed, or that names another registration, is worth nothing', async () => {
    const fresh = await registerAgent(pds, alice)
    const [header, payload, signature] = fresh.token.split('.') as [string, string, string]
    const claims = JSON.parse(Buffer.from(payload, 'base64url').toString())
    const widened = Buffer.from(JSON.stringify({ ...claims, scope: 'atproto transition:generic' })).toString(
      'base64url',
    )
    expect(
      (
        await request(`${pds.url}/xrpc/com.atproto.server.getSession`, {
          headers: bearer(`${header}.${widened}.${signature}`),
        })
      ).status,
    ).toBe(401)
    const bob = await createAccount(pds, 'bobby')
    const foreign = await tokenFor(pds, fresh.id, bob.did, DEFAULT_SCOPES)
    expect((await request(`${pds.url}/xrpc/com.atproto.server.getSession`, { headers: bearer(foreign) })).status).toBe(
      401,
    )
  })
})

test('what agents change elsewhere is on record for good, so they change only so much; reads do not count', async () => {
  const scopes = [
    'atproto',
    rpc('*', READER),
    rpc('app.bsky.actor.getPreferences', '*'),
    rpc('app.bsky.actor.putPreferences', '*'),
  ]
  await using limited = await startPds(
    { agentAuth: { ...withAgents, grantedScopes: scopes } },
    { alone: 'what a node says of a limit is what it knows of the others' },
  )
  const bob = await createAccount(limited, 'bob')
  const tuner = await registerAgent(limited, bob, { scopes })
  const put = (who: Pick<RegisteredAgent, 'call'>) =>
    who.call('app.bsky.actor.putPreferences', { json: { preferences: [] } })
  const token = (lxm: string) =>
    tuner.call(`com.atproto.server.getServiceAuth?${new URLSearchParams({ aud: READER, lxm })}`)
  limited.ctx.limits.charge({ name: 'recordedCall', key: bob.did, cost: 498 })
  expect([(await put(tuner)).status, (await token('com.example.send')).status]).toEqual([200, 200])
  for (const refused of [await put(tuner), await token('com.example.send')])
    expect(refused).toMatchObject({ status: 429, body: { error: 'RateLimitExceeded' } })
  expect((await token('com.example.getThings')).status).toBe(200)
  expect((await tuner.call('app.bsky.actor.getPreferences')).status).toBe(200)
  expect((await put(bob)).status).toBe(200)
  expect((await eventsOf(limited, tuner)).map(({ type }) => type)).toEqual(['preferences', 'service_call'])
})
