/** Apps reach other services as far as their user let them. */
import { beforeAll, expect, test } from 'bun:test'
import { createAccount } from '../../support/clients/account.ts'
import { loopbackClientId, OAuthClient } from '../../support/clients/oauth-client.ts'
import { tokenClaims } from '../../support/servers/upstream.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'

const { pds, appview, other } = useWorld({
  appview: true,
  other: true,
  config: ({ appview }) => ({
    appview: { url: appview.url, did: 'did:web:appview.test#bsky_appview' },
    chat: { url: appview.url, did: 'did:web:chat.test#bsky_chat' },
  }),
})
const alice = setUp(() => createAccount(pds, 'alice'))
beforeAll(() => {
  other.services['bsky_appview'] = other.url
})

/** An app with a grant of these scopes. */
async function app(...scopes: string[]) {
  const scope = ['atproto', ...scopes].join(' ')
  const client = new OAuthClient(pds, loopbackClientId(scope))
  const { access_token } = await client.signIn({ identifier: alice.handle, password: alice.password }, { scope })
  return (nsid: string, headers: Record<string, string> = {}) => client.call(access_token, nsid, {}, { headers })
}

const ours = 'aud=did:web:appview.test%23bsky_appview'
const toOther = () => ({ 'atproto-proxy': `${other.did}#bsky_appview` })

test('a method is called as granted, with a token of the account', async () => {
  const call = await app(`rpc:app.bsky.graph.getFollows?${ours}`)
  expect(await call('app.bsky.graph.getFollows?actor=a')).toMatchObject({ status: 200 })
  expect(tokenClaims(appview.received[0]!)).toMatchObject({
    iss: alice.did,
    aud: 'did:web:appview.test',
    lxm: 'app.bsky.graph.getFollows',
  })
  expect(appview.received[0]!.headers.has('dpop')).toBe(false)
})

test('another method, or the same of another service, is refused with the scope it needs', async () => {
  const call = await app(`rpc:app.bsky.graph.getFollows?${ours}`)
  expect(await call('app.bsky.graph.getFollowers?actor=a')).toMatchObject({
    status: 403,
    body: { error: 'ScopeMissingError', message: `Missing required scope "rpc:app.bsky.graph.getFollowers?${ours}"` },
  })
  expect(await call('app.bsky.graph.getFollows?actor=a', toOther())).toMatchObject({
    status: 403,
    body: { error: 'ScopeMissingError' },
  })
  expect(await call('app.bsky.feed.getTimeline')).toMatchObject({ status: 403 })
  expect(appview.received.length + other.received.length).toBe(0)
})

test('the transitional scope reaches everything but direct messages', async () => {
  const call = await app('transition:generic')
  expect((await call('app.bsky.graph.getFollows?actor=a')).status).toBe(200)
  expect((await call('com.example.anything', toOther())).status).toBe(200)
  expect((await call('chat.bsky.convo.getLog')).status).toBe(403)
  expect((await call('Chat.Bsky.convo.getLog', { 'atproto-proxy': 'did:web:chat.test#bsky_chat' })).status).toBe(403)
  const chatting = await app('transition:generic', 'transition:chat.bsky')
  expect((await chatting('chat.bsky.convo.getLog')).status).toBe(200)
})

test('a feed needs the grant of its skeleton too', async () => {
  const feed = `app.bsky.feed.getFeed?feed=${encodeURIComponent('at://did:plc:aaaaaaaaaaaaaaaaaaaaaaaa/app.bsky.feed.generator/x')}`
  appview.answer('com.atproto.repo.getRecord', () => Response.json({ value: { did: 'did:web:feeds.test' } }))
  const half = await app(`rpc:app.bsky.feed.getFeed?${ours}`)
  expect(await half(feed)).toMatchObject({
    status: 403,
    body: { message: `Missing required scope "rpc:app.bsky.feed.getFeedSkeleton?${ours}"` },
  })
  const whole = await app(`rpc:app.bsky.feed.getFeed?${ours}`, `rpc:app.bsky.feed.getFeedSkeleton?${ours}`)
  expect((await whole(feed)).status).toBe(200)
})

test('preferences kept elsewhere need the grant for elsewhere', async () => {
  const call = await app(`rpc:app.bsky.actor.getPreferences?${ours}`)
  expect((await call('app.bsky.actor.getPreferences')).status).toBe(200)
  expect((await call('app.bsky.actor.getPreferences', toOther())).status).toBe(403)
  expect(other.received.length).toBe(0)
})

test('the 401 of another service does not end the session of an app', async () => {
  appview.answer('app.bsky.graph.getBlocks', () =>
    Response.json(
      { error: 'ExpiredToken', message: 'over' },
      { status: 401, headers: { 'www-authenticate': 'DPoP error="invalid_token"', 'dpop-nonce': 'theirs' } },
    ),
  )
  const call = await app('transition:generic')
  const { status, headers, body } = await call('app.bsky.graph.getBlocks')
  expect({ status, body }).toEqual({ status: 502, body: { error: 'UpstreamFailure', message: 'over' } })
  expect(headers.has('www-authenticate')).toBe(false)
  expect(headers.get('dpop-nonce')).not.toBe('theirs')
})
