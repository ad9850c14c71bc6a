/** Reports, feeds and push tokens: served by asking somebody else. */
import { beforeAll, expect, test } from 'bun:test'
import { AtpAgent } from '@atproto/api'
import { request } from '../../support/clients/http.ts'
import { tokenClaims, type Received } from '../../support/servers/upstream.ts'
import { seedAccount } from '../../support/clients/seed-account.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'

/** What alice shows to say who asks. */
let full: { authorization: string }
const { pds, appview, other, moderation } = useWorld({
  appview: true,
  other: true,
  moderation: true,
  config: ({ moderation }) => ({
    moderation: { reportUrl: moderation.url, reportDid: moderation.did },
  }),
})
const alice = setUp(() => seedAccount(pds, 'alice'))
beforeAll(async () => {
  other.services['bsky_notif'] = other.url
  other.services['atproto_labeler'] = other.url
  full = await alice.as('full')
})

const xrpc = (nsid: string, init: Parameters<typeof request>[1] = {}, as = full) =>
  request(`${pds.url}/xrpc/${nsid}`, { ...init, headers: { ...as, ...(init.headers as Record<string, string>) } })
const spokenFor = (received: Received) => {
  const { iss, aud, lxm } = tokenClaims(received)
  return { iss, aud, lxm }
}

// Reports

const report = {
  reasonType: 'com.atproto.moderation.defs#reasonSpam',
  subject: { $type: 'com.atproto.admin.defs#repoRef', did: 'did:plc:bbbbbbbbbbbbbbbbbbbbbbbb' },
}
const createReport = 'com.atproto.moderation.createReport'

test('a report goes to the moderation service in the name of the account', async () => {
  let sent: unknown
  const accepted = { id: 7, ...report, reportedBy: alice.did, createdAt: '2026-01-01T00:00:00.000Z' }
  moderation.answer(createReport, async (incoming) => {
    sent = await incoming.json()
    return Response.json(accepted)
  })
  const agent = new AtpAgent({ service: pds.url })
  const { data } = await agent.com.atproto.moderation.createReport(report, {
    headers: full,
    encoding: 'application/json',
  })
  expect(data).toMatchObject({ id: 7 })
  expect(sent).toEqual(report)
  expect(spokenFor(moderation.received[0]!)).toEqual({ iss: alice.did, aud: moderation.did, lxm: createReport })
})

test('a report goes to the labeler that it names', async () => {
  other.answer(createReport, () => Response.json({ id: 8 }))
  const answer = await xrpc(createReport, {
    json: report,
    headers: { 'atproto-proxy': `${other.did}#atproto_labeler` },
  })
  expect(answer).toMatchObject({ status: 200, body: { id: 8 } })
  expect(spokenFor(other.received[0]!)).toMatchObject({ aud: other.did, lxm: createReport })
  expect(moderation.received.length).toBe(0)
})

test('an account that was taken down reaches the moderators, and hears what they say', async () => {
  moderation.answer(createReport, () =>
    Response.json({ error: 'AccountTakedown', message: 'Report not accepted from takendown account' }, { status: 400 }),
  )
  expect(await xrpc(createReport, { json: report }, await alice.as('takendown'))).toMatchObject({
    status: 400,
    body: { error: 'AccountTakedown' },
  })
})

test('a report that is none reaches nobody', async () => {
  expect(await xrpc(createReport, { json: { subject: report.subject } })).toMatchObject({
    status: 400,
    body: { error: 'InvalidRequest' },
  })
  expect(await request(`${pds.url}/xrpc/${createReport}`, { json: report })).toMatchObject({
    status: 401,
    body: { error: 'AuthMissing' },
  })
  expect(moderation.received.length).toBe(0)
})

test('what moderators work with goes to the moderation service', async () => {
  expect((await xrpc('tools.ozone.moderation.queryEvents')).status).toBe(200)
  expect(spokenFor(moderation.received[0]!)).toMatchObject({
    aud: moderation.did,
    lxm: 'tools.ozone.moderation.queryEvents',
  })
})

// Feeds

const feed = 'at://did:plc:bbbbbbbbbbbbbbbbbbbbbbbb/app.bsky.feed.generator/cats'
const getFeed = `app.bsky.feed.getFeed?feed=${encodeURIComponent(feed)}&limit=5`
const generator = (value: unknown) =>
  appview.answer('com.atproto.repo.getRecord', () => Response.json({ uri: feed, cid: 'x', value }))

test('a feed is asked for with a token for its generator', async () => {
  generator({ did: 'did:web:feeds.test' })
  appview.answer('app.bsky.feed.getFeed', () =>
    Response.json({ feed: [] }, { headers: { 'atproto-repo-rev': '3abc' } }),
  )
  expect(await xrpc(getFeed)).toMatchObject({ status: 200, body: { feed: [] } })
  const [lookup, asked] = appview.received
  expect(lookup!.path).toBe(
    '/xrpc/com.atproto.repo.getRecord?repo=did%3Aplc%3Abbbbbbbbbbbbbbbbbbbbbbbb&collection=app.bsky.feed.generator&rkey=cats',
  )
  expect(lookup!.headers.has('authorization')).toBe(false)
  expect(asked!.path).toBe(`/xrpc/${getFeed}`)
  expect(spokenFor(asked!)).toEqual({ iss: alice.did, aud: 'did:web:feeds.test', lxm: 'app.bsky.feed.getFeedSkeleton' })
})

test.each([{}, { did: 5 }, { did: 'feeds.test' }, null])('a generator of %j is no feed', async (value) => {
  generator(value)
  expect(await xrpc(getFeed)).toMatchObject({
    status: 400,
    body: { error: 'UnknownFeed', message: 'could not resolve feed did' },
  })
})

test('an answer about a feed that is not an object names no generator', async () => {
  appview.answer('com.atproto.repo.getRecord', () => Response.json(null))
  expect(await xrpc(getFeed)).toMatchObject({
    status: 400,
    body: { error: 'UnknownFeed', message: 'could not resolve feed did' },
  })
})

test('a generator that the AppView does not know is told as the AppView tells it', async () => {
  appview.answer('com.atproto.repo.getRecord', () =>
    Response.json({ error: 'RecordNotFound', message: 'no' }, { status: 400 }),
  )
  expect(await xrpc(getFeed)).toMatchObject({ status: 400, body: { error: 'RecordNotFound' } })
  appview.answer('com.atproto.repo.getRecord', () => new Response('hello'))
  expect(await xrpc(getFeed)).toMatchObject({ status: 502, body: { error: 'UpstreamFailure' } })
})

// Push tokens

const device = { token: 'device-token', platform: 'ios', appId: 'app.test' }

test.each(['app.bsky.notification.registerPush', 'app.bsky.notification.unregisterPush'])(
  '%s tells the notification service',
  async (nsid) => {
    let sent: unknown
    other.answer(nsid, async (incoming) => {
      sent = await incoming.json()
      return Response.json({ ignored: true })
    })
    expect(await xrpc(nsid, { json: { serviceDid: other.did, ...device } })).toMatchObject({ status: 200, body: '' })
    expect(sent).toEqual({ serviceDid: other.did, ...device })
    expect(spokenFor(other.received[0]!)).toEqual({ iss: alice.did, aud: other.did, lxm: nsid })
  },
)

test('the AppView is its own notification service', async () => {
  expect(
    await xrpc('app.bsky.notification.registerPush', { json: { serviceDid: 'did:web:appview.test', ...device } }),
  ).toMatchObject({
    status: 200,
    body: '',
  })
  expect(spokenFor(appview.received[0]!)).toMatchObject({
    aud: 'did:web:appview.test',
    lxm: 'app.bsky.notification.registerPush',
  })
})

test('a notification service that is nowhere is refused', async () => {
  const register = (serviceDid: string) =>
    xrpc('app.bsky.notification.registerPush', { json: { serviceDid, ...device } })
  expect(await register('did:web:nowhere.test')).toMatchObject({
    status: 400,
    body: { message: 'could not resolve did document: did:web:nowhere.test' },
  })
  expect(await register(moderation.did)).toMatchObject({
    status: 400,
    body: { message: `invalid notification service details in did document: ${moderation.did}` },
  })
})
