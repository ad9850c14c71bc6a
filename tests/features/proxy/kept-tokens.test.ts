/** Service tokens that are presented more than once. */
import { beforeAll, beforeEach, expect, test } from 'bun:test'
import { verifyJwt } from '@atproto/xrpc-server'
import { makeAccountKey } from '../../../src/features/identity/account-keys/account-keys.ts'
import { createAccount, xrpc, type TestAccount } from '../../support/clients/account.ts'
import { bearer } from '../../support/clients/http.ts'
import { seedAccount } from '../../support/clients/seed-account.ts'
import type { Received, Upstream } from '../../support/servers/upstream.ts'
import { atOneNode } from '../../support/turns.ts'
import { useWorld } from '../../support/world.ts'
import { setTakedown } from '../../system/conformance/callers.ts'

const { pds, appview, chat, other } = useWorld({ appview: true, chat: true, other: true })
const method = 'app.bsky.unspecced.getPopular'
let accounts = 0
let alice: TestAccount
let node: Disposable
beforeAll(() => {
  other.services['test_service'] = other.url
  node = atOneNode(pds, 'each node keeps the tokens that it has signed')
  return () => node[Symbol.dispose]()
})
beforeEach(async () => {
  alice = await createAccount(pds, `alice-${accounts++}`)
  for (const service of [appview, chat, other]) service.answer(method, () => Response.json({}))
})

const tokenOf = ({ headers }: Received): string => headers.get('authorization')!.replace('Bearer ', '')
const tokensAt = ({ received }: Upstream): string[] => received.map(tokenOf)
const times = async (count: number, ask: () => Promise<{ status: number }>) => {
  for (let i = 0; i < count; i++) expect((await ask()).status).toBe(200)
}
const ask = () => alice.call(method)
const distinct = (tokens: readonly string[]): number => new Set(tokens).size

/** Answers 401 to tokens that it does not accept, as the library of the reference does. */
const accepting = (isAccepted: (token: string) => boolean) =>
  appview.answer(method, (_, received) =>
    isAccepted(tokenOf(received)) ? Response.json({}) : Response.json({ error: 'BadJwt' }, { status: 401 }),
  )

/** Accepts each token once. */
function acceptingOnce() {
  const seen = new Set<string>()
  accepting((token) => !seen.has(token) && seen.add(token) !== null)
}

test('a query that is repeated within half a minute has the same token, and a valid one', async () => {
  await times(2, ask)
  pds.clock.advance({ secs: 28 })
  await times(1, ask)
  expect(distinct(tokensAt(appview))).toBe(1)
  pds.clock.advance({ secs: 3 })
  await times(1, ask)
  expect(distinct(tokensAt(appview))).toBe(2)
  const { exp } = JSON.parse(Buffer.from(tokensAt(appview)[0]!.split('.')[1]!, 'base64url').toString()) as {
    exp: number
  }
  expect(exp * 1000 - pds.clock.now()).toBeGreaterThan(25_000)
})

test('no other method, account or service gets it', async () => {
  const bob = await createAccount(pds, `bob-${accounts}`)
  const at = (service: string) => ({ headers: { 'atproto-proxy': service } })
  for (let round = 0; round < 2; round++) {
    await times(1, ask)
    await times(1, () => bob.call(method))
    await times(1, () => alice.call('app.bsky.unspecced.getOthers'))
    await times(1, () => alice.call(method, at('did:web:chat.test#bsky_chat')))
  }
  expect(appview.received.length).toBe(6)
  expect(distinct(tokensAt(appview))).toBe(3)
  expect(distinct([...tokensAt(appview), ...tokensAt(chat)])).toBe(4)
})

test('whoever asks for the account, the token is the same; an app password without the right gets none', async () => {
  const { body } = await alice.call('com.atproto.server.createAppPassword', { json: { name: 'phone' } })
  const json = { identifier: alice.handle, password: body.password }
  const phone = (await xrpc(pds, 'com.atproto.server.createSession', { json })).body.accessJwt as string
  await times(1, () => alice.call('chat.bsky.convo.listConvos'))
  const refused = await xrpc(pds, 'chat.bsky.convo.listConvos', { headers: bearer(phone) })
  expect(refused).toMatchObject({ status: 400, body: { error: 'InvalidToken', message: 'Bad token method' } })
  expect(chat.received.length).toBe(1)
  await times(1, ask)
  await times(1, () => xrpc(pds, method, { headers: bearer(phone) }))
  expect(distinct(tokensAt(appview))).toBe(1)
})

test('a procedure has a token of its own each time', async () => {
  await times(2, () => alice.call(method, { json: {} }))
  expect(distinct(tokensAt(appview))).toBe(2)
})

test('a service that only its DID document names gets a token of its own each time', async () => {
  await times(2, () => alice.call(method, { headers: { 'atproto-proxy': `${other.did}#test_service` } }))
  expect(distinct(tokensAt(other))).toBe(2)
})

test('a token that the AppView passes on to a feed is new each time', async () => {
  appview.answer('com.atproto.repo.getRecord', () => Response.json({ value: { did: 'did:web:feeds.test' } }))
  const feed = encodeURIComponent('at://did:plc:aaaaaaaaaaaaaaaaaaaaaaaa/app.bsky.feed.generator/x')
  appview.answer('app.bsky.feed.getFeed', () => Response.json({ feed: [] }))
  await times(2, () => alice.call(`app.bsky.feed.getFeed?feed=${feed}`))
  const asked = appview.received.filter(({ path }) => path.includes('getFeed?'))
  expect(distinct(asked.map(tokenOf))).toBe(2)
})

test('a token that a client asks for is new each time', async () => {
  await times(1, ask)
  const path = `com.atproto.server.getServiceAuth?aud=did:web:appview.test&lxm=${method}`
  const made = [await alice.call(path), await alice.call(path)].map(({ body }) => body.token as string)
  expect(distinct([...made, ...tokensAt(appview)])).toBe(3)
})

test.each<[string, () => Promise<unknown>, object]>([
  [
    'its session has ended',
    () => xrpc(pds, 'com.atproto.server.deleteSession', { method: 'POST', headers: bearer(alice.refreshJwt) }),
    { status: 400, body: { error: 'ExpiredToken' } },
  ],
  ['it was taken down', () => setTakedown(pds, alice.did, true), { body: { error: 'AccountTakedown' } }],
])('the token of an account goes nowhere after %s', async (_, end, refusal) => {
  await times(2, ask)
  await end()
  expect(await ask()).toMatchObject(refusal)
  expect(appview.received.length).toBe(2)
})

test('a token of a replaced key is not presented again', async () => {
  const account = await seedAccount(pds, `carol-${accounts}`)
  const headers = await account.as('full')
  await times(2, () => xrpc(pds, method, { headers }))
  const next = makeAccountKey(pds.ctx, 'p256')
  const { did, signingKey } = account
  await pds.damage('account', { did }, { signing_key: next.signingKey, signing_key_wrapped: next.wrapped })
  await times(1, () => xrpc(pds, method, { headers }))
  const verified = (token: string, key: string) => verifyJwt(token, 'did:web:appview.test', method, async () => key)
  const [first, again, last] = tokensAt(appview)
  expect(again).toBe(first!)
  await verified(first!, signingKey)
  await verified(last!, next.signingKey)
})

test('a service that accepts a token once is asked again with a new one, and gets no kept ones for an hour', async () => {
  acceptingOnce()
  await times(4, ask)
  // The second was refused, and sent again.
  expect(appview.received.length).toBe(5)
  expect(distinct(tokensAt(appview))).toBe(4)
  pds.clock.advance({ secs: 3500 })
  acceptingOnce()
  alice = await createAccount(pds, `alice-again-${accounts}`)
  await times(2, ask)
  expect(appview.received.length).toBe(7)
  pds.clock.advance({ secs: 200 })
  accepting(() => true)
  await times(2, ask)
  expect(tokensAt(appview)[8]).toBe(tokensAt(appview)[7]!)
})

test('of requests at the same time, none fails at a service that accepts a token once', async () => {
  acceptingOnce()
  const answers = await Promise.all(Array.from({ length: 8 }, ask))
  expect(answers.map(({ status }) => status)).toEqual(Array(8).fill(200))
  pds.clock.advance({ secs: 3601 })
})

test('a refusal is passed on after one more try, and not tried again for half a minute', async () => {
  accepting(() => false)
  for (let i = 0; i < 4; i++) expect(await ask()).toMatchObject({ status: 401, body: { error: 'BadJwt' } })
  // The first token was refused when it was new; the second request had it as well.
  expect(appview.received.length).toBe(5)
  expect(distinct(tokensAt(appview))).toBe(4)
  pds.clock.advance({ secs: 31 })
  accepting(() => true)
  await times(2, ask)
  expect(tokensAt(appview)[6]).toBe(tokensAt(appview)[5]!)
})
