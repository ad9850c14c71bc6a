/** Reading what one has just written, from an AppView that has not seen it yet. */
import { beforeAll, beforeEach, expect, test } from 'bun:test'
import { gzipSync } from 'node:zlib'
import { AtpAgent } from '@atproto/api'
import { setRecordTakedown } from '../../../src/features/data/repo/repo.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { createAccount, type TestAccount } from '../../support/clients/account.ts'
import { bearer } from '../../support/clients/http.ts'
import { tokenClaims } from '../../support/servers/upstream.ts'
import { setUp } from '../../support/set-up.ts'
import { atOneNode } from '../../support/turns.ts'
import { useWorld } from '../../support/world.ts'

/** Alice's repository as the AppView knows it. */
let knownRev: string

const { pds, appview, other } = useWorld({
  appview: true,
  other: true,
  config: ({ appview }) => ({
    appview: { url: appview.url, did: 'did:web:appview.test#bsky_appview', cdnUrl: 'https://cdn.test' },
  }),
})
const alice = setUp(() => createAccount(pds, 'alice'))
const bob = setUp(() => createAccount(pds, 'bob'))
beforeAll(async () => {
  image = (
    await alice.call('com.atproto.repo.uploadBlob', {
      method: 'POST',
      body: png,
      headers: { 'content-type': 'image/png' },
    })
  ).body.blob
  video = (
    await alice.call('com.atproto.repo.uploadBlob', {
      method: 'POST',
      body: mp4,
      headers: { 'content-type': 'video/mp4' },
    })
  ).body.blob
  await write('app.bsky.actor.profile', { displayName: 'Alice' }, 'self')
})
beforeEach(async () => {
  // Whatever earlier tests wrote is known.
  knownRev = (await write('app.bsky.graph.follow', { subject: bob.did, createdAt: now() })).rev
  appview.answer('app.bsky.feed.getPosts', () => Response.json({ posts: [] }))
})

const now = () => new Date(pds.clock.now()).toISOString()
const hour = (offset: number) => new Date(pds.clock.now() + offset * 3_600_000).toISOString()
let image: { $type: 'blob'; ref: { $link: string }; mimeType: string; size: number }
let video: typeof image
const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)
const mp4 = Buffer.from('0000001866747970697361360000000069736f6d6d703432', 'hex')

async function write(
  collection: string,
  record: object,
  rkey?: string,
): Promise<{ uri: string; cid: string; rev: string }> {
  const nsid = rkey === undefined ? 'com.atproto.repo.createRecord' : 'com.atproto.repo.putRecord'
  const { status, body } = await alice.call(nsid, {
    json: { repo: alice.did, collection, rkey, validate: false, record: { $type: collection, ...record } },
  })
  if (status !== 200) throw new Error(JSON.stringify(body))
  return { uri: body.uri, cid: body.cid, rev: body.commit.rev }
}
const post = (text: string, more: object = {}) => write('app.bsky.feed.post', { text, createdAt: now(), ...more })

const author = (account: TestAccount, more: object = {}) => ({
  did: account.did,
  handle: account.handle,
  displayName: 'old name',
  ...more,
})
const view = (account: TestAccount, rkey: string, indexedAt: string, record: object = {}) => ({
  uri: `at://${account.did}/app.bsky.feed.post/${rkey}`,
  cid: 'bafyreidfayvfuwqa7qlnopdjiqrxzs6blmoeu4rujcjtnci5beludirz2a',
  author: author(account),
  record: { $type: 'app.bsky.feed.post', text: rkey, createdAt: indexedAt, ...record },
  indexedAt,
})
/** The AppView answers so, knowing of nothing since. */
const says = (nsid: string, body: unknown, headers: Record<string, string> = {}) =>
  appview.answer(nsid, () => Response.json(body, { headers: { 'atproto-repo-rev': knownRev, ...headers } }))
const texts = ({ body }: { body: any }) => body.feed.map((item: any) => item.post.record.text)

// Feeds

test('a new post is in the timeline, where its time puts it', async () => {
  says(
    'app.bsky.feed.getTimeline',
    { cursor: 'next', feed: [{ post: view(bob, 'newer', hour(1)) }, { post: view(bob, 'older', hour(-1)) }] },
    { 'atproto-content-labelers': 'did:web:l' },
  )
  const { uri, cid } = await post('fresh')
  pds.clock.advance({ secs: 2 })
  const answer = await alice.call('app.bsky.feed.getTimeline?limit=2')
  expect(answer.status).toBe(200)
  expect(answer.body.cursor).toBe('next')
  expect(texts(answer)).toEqual(['newer', 'fresh', 'older'])
  expect(answer.body.feed[1]).toEqual({
    post: {
      uri,
      cid,
      author: { did: alice.did, handle: 'alice.test', displayName: 'Alice' },
      record: { $type: 'app.bsky.feed.post', text: 'fresh', createdAt: expect.any(String) },
      replyCount: 0,
      repostCount: 0,
      likeCount: 0,
      quoteCount: 0,
      indexedAt: expect.any(String),
    },
  })
  const lag = Number(answer.headers.get('atproto-upstream-lag'))
  expect(lag).toBeGreaterThanOrEqual(2000)
  expect(lag).toBeLessThan(60_000)
  expect(answer.headers.has('atproto-repo-rev')).toBe(false)
  expect(answer.headers.get('atproto-content-labelers')).toBe('did:web:l')
  expect(answer.headers.get('content-type')).toContain('application/json')
  expect(tokenClaims(appview.received[0]!)).toMatchObject({
    iss: alice.did,
    aud: 'did:web:appview.test',
    lxm: 'app.bsky.feed.getTimeline',
  })
})

test('nothing is added to a response that is nested deeper than 256 levels', async () => {
  await post('fresh')
  for (const [levels, added] of [
    [200, 1],
    [300, 0],
  ] as const) {
    says('app.bsky.feed.getTimeline', { feed: [], nested: JSON.parse('['.repeat(levels) + ']'.repeat(levels)) })
    const { status, body } = await alice.call('app.bsky.feed.getTimeline')
    expect([levels, status, body.feed.length]).toEqual([levels, 200, added])
  }
})

test('the client of the reference reads its own posts, newest first', async () => {
  says('app.bsky.feed.getTimeline', { feed: [] })
  await post('one')
  await post('two')
  const agent = new AtpAgent({ service: pds.url })
  const { data } = await agent.app.bsky.feed.getTimeline({}, { headers: bearer(alice.accessJwt) })
  expect(data.feed.map(({ post: { record } }) => record['text'])).toEqual(['two', 'one'])
})

test('a post is not on a page of older posts, nor twice on one', async () => {
  const { uri } = await post('fresh')
  says('app.bsky.feed.getTimeline', {
    feed: [{ post: view(bob, 'old', hour(-5)) }, { post: view(bob, 'older', hour(-6)) }],
  })
  expect(texts(await alice.call('app.bsky.feed.getTimeline?cursor=next'))).toEqual(['old', 'older'])
  says('app.bsky.feed.getTimeline', {
    feed: [{ post: view(bob, 'newer', hour(5)) }, { post: view(bob, 'newest', hour(6)) }],
  })
  expect(texts(await alice.call('app.bsky.feed.getTimeline'))).toEqual(['newer', 'newest'])
  says('app.bsky.feed.getTimeline', { feed: [{ post: { ...view(alice, 'known', hour(-1)), uri } }] })
  expect(texts(await alice.call('app.bsky.feed.getTimeline'))).toEqual(['known'])
})

test('the bounds of a page are those of the AppView, whatever is added to it', async () => {
  says('app.bsky.feed.getTimeline', {
    cursor: 'next',
    startCursor: 'first',
    feed: [{ post: view(bob, 'older', hour(-1)) }],
  })
  await post('fresh')
  const { body } = await alice.call('app.bsky.feed.getTimeline?limit=2&since=known')
  expect(body).toMatchObject({ cursor: 'next', startCursor: 'first' })
  expect(texts({ body })).toEqual(['fresh', 'older'])
  expect(appview.received[0]!.path).toContain('since=known')
})

test('only the account itself sees what is new', async () => {
  await post('fresh')
  says('app.bsky.feed.getTimeline', { feed: [] })
  expect(texts(await bob.call('app.bsky.feed.getTimeline'))).toEqual([])
})

test('the own feed has new posts and the new name; feeds of others have neither', async () => {
  await post('fresh')
  await write('app.bsky.actor.profile', { displayName: 'Alice anew', avatar: image }, 'self')
  const feed = [{ post: view(alice, 'mine', hour(-1)) }, { post: view(bob, 'theirs', hour(-2)) }]
  says('app.bsky.feed.getAuthorFeed', { feed })
  const own = await alice.call(`app.bsky.feed.getAuthorFeed?actor=${alice.handle}`)
  expect(texts(own)).toEqual(['fresh', 'mine', 'theirs'])
  expect(own.body.feed.map((item: any) => item.post.author.displayName)).toEqual([
    'Alice anew',
    'Alice anew',
    'old name',
  ])
  expect(own.body.feed[1].post.author.avatar).toBe(
    `https://cdn.test/img/avatar/plain/${alice.did}/${image.ref.$link}@jpeg`,
  )

  says('app.bsky.feed.getAuthorFeed', { feed: feed.toReversed() })
  expect(texts(await alice.call(`app.bsky.feed.getAuthorFeed?actor=${bob.handle}`))).toEqual(['theirs', 'mine'])
  const repost = { $type: 'app.bsky.feed.defs#reasonRepost', by: author(alice), indexedAt: hour(-1) }
  says('app.bsky.feed.getAuthorFeed', { feed: [{ post: view(bob, 'theirs', hour(-2)), reason: repost }] })
  expect(texts(await alice.call(`app.bsky.feed.getAuthorFeed?actor=${alice.did}`))).toEqual(['fresh', 'theirs'])
  says('app.bsky.feed.getAuthorFeed', {
    feed: [{ post: view(alice, 'mine', hour(-2)), reason: { ...repost, by: author(bob) } }],
  })
  expect(texts(await alice.call(`app.bsky.feed.getAuthorFeed?actor=${bob.did}`))).toEqual(['mine'])

  says('app.bsky.feed.getActorLikes', { feed })
  const likes = await alice.call(`app.bsky.feed.getActorLikes?actor=${alice.did}`)
  expect(texts(likes)).toEqual(['mine', 'theirs'])
  expect(likes.body.feed.map((item: any) => item.post.author.displayName)).toEqual(['Alice anew', 'old name'])
})

test('a filtered feed gets what passes its filter', async () => {
  const stranger = { root: reference(view(bob, 'root', hour(-3))), parent: reference(view(bob, 'root', hour(-3))) }
  const mine = await post('plain')
  await post('reply', { reply: stranger })
  await post('thread', { reply: { root: reference(mine), parent: reference(mine) } })
  await post('picture', { embed: images() })
  says('app.bsky.feed.getAuthorFeed', { feed: [{ post: view(alice, 'mine', hour(-1)) }] })
  const filtered = async (filter: string) =>
    texts(await alice.call(`app.bsky.feed.getAuthorFeed?actor=${alice.did}&filter=${filter}`)).slice(0, -1)
  expect(await filtered('posts_with_replies')).toEqual(['picture', 'thread', 'reply', 'plain'])
  expect(await filtered('posts_no_replies')).toEqual(['picture', 'plain'])
  expect(await filtered('posts_and_author_threads')).toEqual(['picture', 'thread', 'plain'])
  expect(await filtered('posts_with_media')).toEqual(['picture'])
  expect(await filtered('posts_with_video')).toEqual([])
})

// Profiles

test('a changed profile shows to its owner', async () => {
  await write('app.bsky.actor.profile', { displayName: 'New name', description: 'New words', banner: image }, 'self')
  const old = {
    ...author(alice, { description: 'old', avatar: 'https://cdn.test/old', banner: 'https://cdn.test/old' }),
    followersCount: 5,
  }
  says('app.bsky.actor.getProfile', old)
  const changed = {
    did: alice.did,
    handle: alice.handle,
    displayName: 'New name',
    description: 'New words',
    banner: `https://cdn.test/img/banner/plain/${alice.did}/${image.ref.$link}@jpeg`,
    followersCount: 5,
  }
  expect((await alice.call(`app.bsky.actor.getProfile?actor=${alice.did}`)).body).toEqual(changed)
  says('app.bsky.actor.getProfiles', { profiles: [author(bob), old] })
  expect((await alice.call(`app.bsky.actor.getProfiles?actors=${bob.did}&actors=${alice.did}`)).body).toEqual({
    profiles: [author(bob), changed],
  })
  says('app.bsky.actor.getProfile', author(bob))
  expect((await alice.call(`app.bsky.actor.getProfile?actor=${bob.did}`)).body).toEqual(author(bob))
})

// Embeds

async function embedOf(embed: object): Promise<unknown> {
  await post('with embed', { embed })
  says('app.bsky.feed.getTimeline', { feed: [] })
  const { body } = await alice.call('app.bsky.feed.getTimeline')
  return body.feed[0]?.post.embed
}
const cdn = (preset: string) => `https://cdn.test/img/${preset}/plain/${alice.did}/${image.ref.$link}@jpeg`
const quoted = () => ({
  uri: `at://${bob.did}/app.bsky.feed.post/quoted`,
  cid: 'bafyreidfayvfuwqa7qlnopdjiqrxzs6blmoeu4rujcjtnci5beludirz2a',
})
const images = () => ({
  $type: 'app.bsky.embed.images',
  images: [{ image, alt: 'a cat', aspectRatio: { width: 2, height: 1 } }],
})
const imagesView = () => ({
  $type: 'app.bsky.embed.images#view',
  images: [
    {
      thumb: cdn('feed_thumbnail'),
      fullsize: cdn('feed_fullsize'),
      alt: 'a cat',
      aspectRatio: { width: 2, height: 1 },
    },
  ],
})

test('images and links are shown from the CDN', async () => {
  expect(await embedOf(images())).toEqual(imagesView())
  expect(
    await embedOf({
      $type: 'app.bsky.embed.external',
      external: { uri: 'https://x.test', title: 'x', description: 'y', thumb: image },
    }),
  ).toEqual({
    $type: 'app.bsky.embed.external#view',
    external: { uri: 'https://x.test', title: 'x', description: 'y', thumb: cdn('feed_thumbnail') },
  })
})

test('a quoted post is asked for in the name of the author', async () => {
  appview.answer('app.bsky.feed.getPosts', () => Response.json({ posts: [view(bob, 'quoted', hour(-1))] }))
  const record = {
    $type: 'app.bsky.embed.record#viewRecord',
    uri: quoted().uri,
    author: author(bob),
    value: { $type: 'app.bsky.feed.post', text: 'quoted' },
  }
  expect(await embedOf({ $type: 'app.bsky.embed.record', record: quoted() })).toMatchObject({
    $type: 'app.bsky.embed.record#view',
    record,
  })
  const lookup = appview.received.find(({ path }) => path.startsWith('/xrpc/app.bsky.feed.getPosts'))!
  expect(lookup.path).toBe(`/xrpc/app.bsky.feed.getPosts?uris=${encodeURIComponent(quoted().uri)}`)
  expect(tokenClaims(lookup)).toMatchObject({
    iss: alice.did,
    aud: 'did:web:appview.test',
    lxm: 'app.bsky.feed.getPosts',
  })
})

test('a quoted post that is not there is shown as missing, with the media beside it', async () => {
  const missing = { record: { $type: 'app.bsky.embed.record#viewNotFound', uri: quoted().uri, notFound: true } }
  expect(
    await embedOf({
      $type: 'app.bsky.embed.recordWithMedia',
      record: { $type: 'app.bsky.embed.record', record: quoted() },
      media: images(),
    }),
  ).toEqual({
    $type: 'app.bsky.embed.recordWithMedia#view',
    media: imagesView(),
    record: missing,
  })
})

test('a quoted post of more than 64 KiB is not shown, nor what quotes it', async () => {
  const large = view(bob, 'large', hour(-1), { filler: 'x'.repeat(64 * 1024) })
  appview.answer('app.bsky.feed.getPosts', () => Response.json({ posts: [large] }))
  says('app.bsky.feed.getTimeline', { feed: [] })
  await post('quoting', { embed: { $type: 'app.bsky.embed.record', record: quoted() } })
  expect(await alice.call('app.bsky.feed.getTimeline')).toMatchObject({ status: 200, body: { feed: [] } })
})

test('a video is left out until it was processed', async () => {
  expect(await embedOf({ $type: 'app.bsky.embed.video', video })).toBeUndefined()
  expect(video.mimeType).toBe('video/mp4')
})

test('when a quoted post cannot be asked for, the answer is the AppView’s own', async () => {
  appview.answer('app.bsky.feed.getPosts', () => new Response('down', { status: 500 }))
  says('app.bsky.feed.getTimeline', { feed: [] })
  await post('quoting', { embed: { $type: 'app.bsky.embed.record', record: quoted() } })
  const answer = await alice.call('app.bsky.feed.getTimeline')
  expect(answer).toMatchObject({ status: 200, body: { feed: [] } })
  expect(answer.headers.get('atproto-repo-rev')).toBe(knownRev)
})

// Threads

const threadOf = (post: object, more: object = {}) => ({ $type: 'app.bsky.feed.defs#threadViewPost', post, ...more })
const reference = ({ uri, cid }: { uri: string; cid: string }) => ({ uri, cid })
const getThread = (uri: string) => alice.call(`app.bsky.feed.getPostThread?uri=${encodeURIComponent(uri)}`)

test('a new reply stands under its parent', async () => {
  const root = view(bob, 'root', hour(-3))
  const middle = view(bob, 'middle', hour(-2), { reply: { root: reference(root), parent: reference(root) } })
  await post('to the middle', { reply: { root: reference(root), parent: reference(middle) } })
  const answer = await post('to the root', { reply: { root: reference(root), parent: reference(root) } })
  await post('to my own', { reply: { root: reference(root), parent: reference(answer) } })
  await post('elsewhere', { reply: { root: reference(view(bob, 'other', hour(-3))), parent: reference(root) } })
  says('app.bsky.feed.getPostThread', { thread: threadOf(root, { replies: [threadOf(middle)] }) })
  const { body } = await getThread(root.uri)
  const shape = (node: any): unknown => [node.post.record.text, ...(node.replies ?? []).map(shape)]
  expect(shape(body.thread)).toEqual(['root', ['to the root', ['to my own']], ['middle', ['to the middle']]])

  says('app.bsky.feed.getPostThread', { thread: threadOf(middle) })
  expect(shape((await getThread(middle.uri)).body.thread)).toEqual(['middle', ['to the middle']])
})

test('a new reply is added once, however many places a response has for it', async () => {
  const root = view(bob, 'root', hour(-3))
  const middle = view(bob, 'middle', hour(-2))
  await post('fresh', { reply: { root: reference(root), parent: reference(middle) } })
  says('app.bsky.feed.getPostThread', { thread: threadOf(root, { replies: Array(50).fill(threadOf(middle)) }) })
  const { body } = await getThread(root.uri)
  expect(body.thread.replies.map(({ replies = [] }: any) => replies.length)).toEqual([1, ...Array(49).fill(0)])
})

const notFound = (headers: Record<string, string> = {}) =>
  appview.answer('app.bsky.feed.getPostThread', () =>
    Response.json({ error: 'NotFound', message: 'Post not found' }, { status: 400, headers }),
  )

test('a thread around a post that the AppView does not know is made here, its ancestors are asked for', async () => {
  const root = view(bob, 'root', hour(-3))
  const fresh = await post('fresh', { reply: { root: reference(root), parent: reference(root) } })
  await post('answer to fresh', { reply: { root: reference(root), parent: reference(fresh) } })
  appview.answer('app.bsky.feed.getPostThread', (request) => {
    const params = new URL(request.url).searchParams
    if (params.get('uri') !== root.uri)
      return Response.json(
        { error: 'NotFound', message: 'x' },
        { status: 400, headers: { 'atproto-repo-rev': knownRev } },
      )
    return Response.json({ thread: threadOf(root), asked: params.get('depth') })
  })
  for (const authority of [alice.did, alice.handle]) {
    const { status, body, headers } = await getThread(fresh.uri.replace(alice.did, authority))
    expect(status).toBe(200)
    expect(body.thread).toMatchObject({
      post: { uri: fresh.uri, author: { did: alice.did } },
      parent: { post: { uri: root.uri } },
      replies: [{ post: { record: { text: 'answer to fresh' } } }],
    })
    expect(headers.get('atproto-upstream-lag')).toMatch(/^\d+$/)
  }
  const ancestors = appview.received.find(({ path }) => path.includes('depth=0'))!
  expect(tokenClaims(ancestors)).toMatchObject({ iss: alice.did, lxm: 'app.bsky.feed.getPostThread' })
})

test('the ancestors of a new post may be as long as other threads of the service', async () => {
  const root = view(bob, 'root', hour(-3), { filler: 'x'.repeat(600 * 1024) })
  const fresh = await post('fresh', { reply: { root: reference(root), parent: reference(root) } })
  const thread = (request: Request) =>
    new URL(request.url).searchParams.get('uri') === root.uri
      ? Response.json({ thread: threadOf(root) })
      : Response.json({ error: 'NotFound' }, { status: 400, headers: { 'atproto-repo-rev': knownRev } })
  appview.answer('app.bsky.feed.getPostThread', thread)
  expect((await getThread(fresh.uri)).body.thread).toMatchObject({ parent: { post: { uri: root.uri } } })

  other.services['bsky_appview'] = other.url
  other.answer('app.bsky.feed.getPostThread', thread)
  const headers = { 'atproto-proxy': `${other.did}#bsky_appview` }
  const { body } = await alice.call(`app.bsky.feed.getPostThread?uri=${encodeURIComponent(fresh.uri)}`, { headers })
  expect(body.thread.post.uri).toBe(fresh.uri)
  expect(body.thread.parent).toBeUndefined()
})

test('without its ancestors the thread is shown as far as it is known', async () => {
  const root = view(bob, 'root', hour(-3))
  const fresh = await post('fresh', { reply: { root: reference(root), parent: reference(root) } })
  notFound({ 'atproto-repo-rev': knownRev })
  expect((await getThread(fresh.uri)).body).toMatchObject({ thread: { post: { uri: fresh.uri } } })
})

test('a thread is not found when the AppView knows better, or it is not about a new post of the caller', async () => {
  const fresh = await post('fresh')
  notFound()
  expect(await getThread(fresh.uri)).toMatchObject({
    status: 400,
    body: { error: 'NotFound', message: 'Post not found' },
  })
  notFound({ 'atproto-repo-rev': knownRev })
  expect((await getThread(`at://${bob.did}/app.bsky.feed.post/x`)).status).toBe(400)
  expect((await getThread(`at://${alice.did}/app.bsky.feed.post/never`)).status).toBe(400)
  expect((await getThread(`at://nobody.test/app.bsky.feed.post/never`)).status).toBe(400)
  expect((await bob.call(`app.bsky.feed.getPostThread?uri=${encodeURIComponent(fresh.uri)}`)).status).toBe(400)
})

test.each([
  ['refused', () => Response.json({ error: 'InvalidRequest', message: 'of another question' }, { status: 400 })],
  ['answered with something else', () => Response.json({})],
])('a thread is not found when what its post quotes is %s', async (_, answer) => {
  appview.answer('app.bsky.feed.getPosts', answer)
  const fresh = await post('quoting', { embed: { $type: 'app.bsky.embed.record', record: quoted() } })
  notFound({ 'atproto-repo-rev': knownRev })
  expect(await getThread(fresh.uri)).toMatchObject({
    status: 400,
    body: { error: 'NotFound', message: 'Post not found' },
  })
})

test('a thread that is blocked stays blocked', async () => {
  await post('fresh')
  const thread = {
    $type: 'app.bsky.feed.defs#blockedPost',
    uri: `at://${bob.did}/app.bsky.feed.post/root`,
    blocked: true,
    author: { did: bob.did },
  }
  says('app.bsky.feed.getPostThread', { thread })
  expect((await getThread(thread.uri)).body).toEqual({ thread })
})

// What passes untouched

const raw = (headers: Record<string, string> = {}) =>
  fetch(`${pds.url}/xrpc/app.bsky.feed.getTimeline`, {
    headers: { ...bearer(alice.accessJwt), ...headers },
    decompress: false,
  })
const answers = (body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string>) =>
  appview.answer(
    'app.bsky.feed.getTimeline',
    () => new Response(body, { headers: { 'content-type': 'application/json', ...headers } }),
  )

test('an AppView that knows the newest commit costs no statement more than a method without additions', async () => {
  using _ = atOneNode(pds, 'the statements of a node are counted')
  const { counters } = pds.ctx.db
  const statementsOf = async (nsid: string): Promise<number> => {
    says(nsid, { feed: [] })
    await alice.call(nsid)
    const before = counters.statements
    expect((await alice.call(nsid)).status).toBe(200)
    return counters.statements - before
  }
  expect(await statementsOf('app.bsky.feed.getTimeline')).toBe(await statementsOf('app.bsky.feed.getQuotes'))
})

test('an answer that lacks nothing passes as it is, coding and all', async () => {
  const bytes = gzipSync('{ "feed" : [] }')
  answers(bytes, { 'content-encoding': 'gzip', 'atproto-repo-rev': knownRev })
  const response = await raw({ 'accept-encoding': 'gzip' })
  expect(response.headers.get('content-encoding')).toBe('gzip')
  expect(response.headers.get('atproto-repo-rev')).toBe(knownRev)
  expect(response.headers.has('atproto-upstream-lag')).toBe(false)
  expect(Buffer.compare(await response.bytes(), bytes)).toBe(0)
  expect(appview.received[0]!.headers.get('accept-encoding')).toBe('gzip;q=1')
})

test.each([
  ['no rev', '{ "feed" : [] }', {}],
  ['a rev that is none', '{ "feed" : [] }', { 'atproto-repo-rev': 'latest' }],
  ['another type', '{ "feed" : [] }', { 'content-type': 'text/plain', 'atproto-repo-rev': 'known' }],
  ['no JSON', '{ "feed" : [', { 'atproto-repo-rev': 'known' }],
  ['something else than the lexicon says', '{ "feed" : [ {} ] }', { 'atproto-repo-rev': 'known' }],
] as [string, string, Record<string, string>][])('an answer with %s passes as it came', async (_, text, headers) => {
  await post('fresh')
  answers(text, headers['atproto-repo-rev'] === 'known' ? { ...headers, 'atproto-repo-rev': knownRev } : headers)
  const response = await raw({ 'accept-encoding': 'identity' })
  expect({ status: response.status, text: await response.text() }).toEqual({ status: 200, text })
})

test('a coded answer is changed all the same', async () => {
  await post('fresh')
  answers(gzipSync('{"feed":[]}'), { 'content-encoding': 'gzip', 'atproto-repo-rev': knownRev })
  const response = await raw({ 'accept-encoding': 'gzip' })
  expect(response.headers.get('content-encoding')).toBeNull()
  expect(((await response.json()) as { feed: unknown[] }).feed).toHaveLength(1)
})

test('an answer that is too large to pass is refused; one that unpacks to more than is read passes as it came', async () => {
  await post('fresh')
  const body = new TextEncoder().encode(`{"feed":[]${' '.repeat(11 * 1024 * 1024)}}`)
  answers(body, { 'atproto-repo-rev': knownRev })
  expect((await raw()).status).toBe(502)
  const packed = gzipSync(body)
  answers(packed, { 'content-encoding': 'gzip', 'atproto-repo-rev': knownRev })
  const response = await raw({ 'accept-encoding': 'gzip' })
  expect(response.headers.get('content-encoding')).toBe('gzip')
  expect(Buffer.compare(await response.bytes(), packed)).toBe(0)
})

test('an error that unpacks to more than is read is told without its words', async () => {
  const bomb = gzipSync(JSON.stringify({ error: 'Bomb', message: 'A'.repeat(1024 * 1024) }))
  appview.answer(
    'app.bsky.feed.getTimeline',
    () =>
      new Response(bomb, { status: 418, headers: { 'content-type': 'application/json', 'content-encoding': 'gzip' } }),
  )
  const response = await raw({ 'accept-encoding': 'gzip' })
  expect(response.status).toBe(418)
  expect(await response.text()).not.toContain('Bomb')
})

test('an answer that is too long to be read here passes as it is, to its last byte', async () => {
  await post('fresh')
  const long = JSON.stringify({ feed: [], filler: Array.from({ length: 700_000 }, () => []) })
  expect(long.length).toBeGreaterThan(2 * 1024 ** 2)
  const headers = { 'atproto-repo-rev': knownRev }
  answers(long, headers)
  expect(await (await raw({ 'accept-encoding': 'identity' })).text()).toBe(long)
  const bytes = gzipSync(long)
  answers(bytes, { ...headers, 'content-encoding': 'gzip' })
  const coded = await raw({ 'accept-encoding': 'gzip' })
  expect(coded.headers.get('content-encoding')).toBe('gzip')
  expect(Buffer.compare(await coded.bytes(), bytes)).toBe(0)
  const noise = Buffer.from(Array.from({ length: 3 * 1024 ** 2 }, (_, i) => (i * 7919) & 255))
  answers(new Uint8Array(noise), headers)
  expect(Buffer.compare(await (await raw({ 'accept-encoding': 'identity' })).bytes(), noise)).toBe(0)
  answers(long.slice(0, 1_900_000) + ' '.repeat(2), headers)
  expect((await (await raw({ 'accept-encoding': 'identity' })).text()).length).toBe(1_900_002)
})

test('of a service that the caller chose, less is read', async () => {
  other.services['bsky_appview'] = other.url
  const headers = { 'atproto-proxy': `${other.did}#bsky_appview` }
  await post('fresh')
  for (const [kib, added] of [
    [500, 1],
    [520, 0],
  ] as const) {
    const body = { feed: [], filler: 'x'.repeat(kib * 1024) }
    other.answer('app.bsky.feed.getTimeline', () => Response.json(body, { headers: { 'atproto-repo-rev': knownRev } }))
    says('app.bsky.feed.getTimeline', body)
    const lengths = [
      await alice.call('app.bsky.feed.getTimeline', { headers }),
      await alice.call('app.bsky.feed.getTimeline'),
    ]
    expect(lengths.map((answer) => answer.body.feed.length)).toEqual([added, 1])
  }
})

test('posts are added to the longest page of a feed, with the pinned post before it', async () => {
  await post('fresh')
  const items = Array.from({ length: 101 }, (_, i) => ({ post: view(alice, `old${i}`, hour(-1)) }))
  says('app.bsky.feed.getAuthorFeed', { feed: items })
  const { body } = await alice.call(`app.bsky.feed.getAuthorFeed?actor=${alice.did}&limit=100&includePins=true`)
  expect(body.feed).toHaveLength(102)
})

test('nothing is added to longer lists than a request can ask for', async () => {
  await write('app.bsky.actor.profile', { displayName: 'Alice' }, 'self')
  await post('fresh')
  const items = Array.from({ length: 102 }, (_, i) => ({ post: view(alice, `old${i}`, hour(-1)) }))
  for (const nsid of ['getTimeline', 'getAuthorFeed', 'getActorLikes']) {
    says(`app.bsky.feed.${nsid}`, { feed: items })
    const { body } = await alice.call(`app.bsky.feed.${nsid}?actor=${alice.did}`)
    expect(body.feed).toEqual(items)
  }
  const profiles = Array<object>(26).fill(author(alice))
  says('app.bsky.actor.getProfiles', { profiles })
  expect((await alice.call(`app.bsky.actor.getProfiles?actors=${alice.did}`)).body).toEqual({ profiles })
})

test('an own post that is unusually large is left to the AppView', async () => {
  says('app.bsky.feed.getTimeline', { feed: [] })
  await post('large', { filler: 'x'.repeat(65 * 1024) })
  await post('fresh', { filler: 'x'.repeat(60 * 1024) })
  expect(texts(await alice.call('app.bsky.feed.getTimeline'))).toEqual(['fresh'])
})

test('own posts that are large together are left to the AppView, except for the first', async () => {
  says('app.bsky.feed.getTimeline', { feed: [] })
  for (const text of ['one', 'two', 'three']) await post(text, { filler: 'x'.repeat(60 * 1024) })
  expect(texts(await alice.call('app.bsky.feed.getTimeline'))).toEqual(['two', 'one'])
})

test('a repository that is new as a whole adds nothing', async () => {
  await post('fresh')
  answers('{"feed":[]}', { 'atproto-repo-rev': '2222222222222' })
  expect(await (await raw({ 'accept-encoding': 'identity' })).text()).toBe('{"feed":[]}')
})

test('records of other kinds make no lag', async () => {
  await write('app.bsky.graph.follow', { subject: bob.did, createdAt: now() })
  says('app.bsky.feed.getTimeline', { feed: [] })
  expect((await raw()).headers.has('atproto-upstream-lag')).toBe(false)
})

test('a post that was written unchecked and does not hold is left out', async () => {
  await write('app.bsky.feed.post', { text: 5, embed: 'what' })
  await post('fresh')
  says('app.bsky.feed.getTimeline', { feed: [] })
  expect(texts(await alice.call('app.bsky.feed.getTimeline'))).toEqual(['fresh'])
})

test('a post that was taken down is left out', async () => {
  const { uri } = await post('bad')
  await post('fresh')
  const [did, ...path] = uri.slice('at://'.length).split('/')
  await pds.ctx.db.transaction((tx) => setRecordTakedown(tx, { did: did as Did, path: path.join('/'), ref: 'x' }))
  says('app.bsky.feed.getTimeline', { feed: [] })
  expect(texts(await alice.call('app.bsky.feed.getTimeline'))).toEqual(['fresh'])
})

test('errors are told as they are', async () => {
  await post('fresh')
  appview.answer('app.bsky.feed.getTimeline', () =>
    Response.json({ error: 'BadCursor', message: 'm' }, { status: 400, headers: { 'atproto-repo-rev': knownRev } }),
  )
  expect(await alice.call('app.bsky.feed.getTimeline')).toMatchObject({ status: 400, body: { error: 'BadCursor' } })
  expect(await alice.call('app.bsky.feed.getTimeline?limit=1000')).toMatchObject({
    status: 400,
    body: { error: 'InvalidRequest' },
  })
})

test('codings that nobody speaks are refused', async () => {
  says('app.bsky.feed.getTimeline', { feed: [] })
  expect((await raw({ 'accept-encoding': 'invalid' })).status).toBe(200)
  const refused = await raw({ 'accept-encoding': 'invalid, *;q=0' })
  expect({ status: refused.status, body: await refused.json() }).toEqual({
    status: 406,
    body: { error: 'NotAcceptable', message: 'this service does not support any of the requested encodings' },
  })
  const malformed = await raw({ 'accept-encoding': ';q=1' })
  expect({ status: malformed.status, body: await malformed.json() }).toEqual({
    status: 400,
    body: { error: 'InvalidRequest', message: 'Invalid accept-encoding: ";q=1"' },
  })
})
