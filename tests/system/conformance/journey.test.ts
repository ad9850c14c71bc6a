/**
 * What a stranger tries: sign up, post, watch the stream, take the repository out, and move with it to a second server.
 */
import { expect, test } from 'bun:test'
import { AtpAgent } from '@atproto/api'
import { readCarWithRoot } from '@atproto/repo'
import { PASSWORD, xrpc } from '../../support/clients/account.ts'
import { Consumer, resolverAt } from '../../support/clients/consumer.ts'
import { lastCode } from '../../support/servers/mail.ts'
import { belongingsOf, moveAccount, settleIn, verifiedRepo } from '../../support/clients/migration.ts'
import { startPds } from '../../support/servers/pds.ts'
import { Subscriber } from '../../support/clients/subscriber.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'

const { pds: first, plc } = useWorld({ plc: true, config: { rateLimit: { enabled: false } } })
const second = setUp(() => startPds({ plcDirectoryUrl: plc.url, rateLimit: { enabled: false } }))

async function signUp(name: string): Promise<AtpAgent> {
  const agent = new AtpAgent({ service: first.url })
  await agent.createAccount({ handle: `${name}.test`, email: `${name}@example.com`, password: PASSWORD })
  return agent
}

test('a stranger signs up and posts, and the network can check every step', async () => {
  expect(await (await fetch(`${first.url}/xrpc/_health`)).json()).toMatchObject({ db: 'ok' })
  const consumer = new Consumer(first.url, { startCursor: 0, plcUrl: plc.url })
  const alice = await signUp('alice')
  const { uri, cid } = await alice.post({ text: 'Hello from a stranger' })
  const events = await consumer.until((seen) => seen.some(({ event }) => event === 'create'))
  expect(events.map(({ event }) => event)).toEqual(['identity', 'account', 'sync', 'create'])
  expect(events.at(-1)).toMatchObject({ did: alice.assertDid, record: { text: 'Hello from a stranger' } })
  expect(String((events.at(-1) as { cid: unknown }).cid)).toBe(cid)
  expect(consumer.faults).toEqual([])
  await consumer.stop()
  const { creates } = await verifiedRepo(alice, plc.url)
  expect(
    creates.map(({ collection, rkey, cid: at }) => [`at://${alice.assertDid}/${collection}/${rkey}`, at.toString()]),
  ).toEqual([[uri, cid]])
})

test('an account moves to a second server with all it has, and the network follows it', async () => {
  const bob = await signUp('bob')
  await settleIn(bob)
  const before = await belongingsOf(bob, plc.url)
  expect([Object.keys(before.records).length, Object.keys(before.blobs).length]).toEqual([15, 3])
  const [there, relay] = [new Subscriber(second.url), new Subscriber(first.url)]
  const consumer = new Consumer(second.url, { startCursor: 0, plcUrl: plc.url })
  await Promise.all([there.opened, relay.opened])
  const old = await verifiedRepo(bob, plc.url)

  const moved = await moveAccount({
    from: bob,
    to: second.url,
    handle: 'bob.test',
    email: 'bob@example.com',
    password: 'another password',
    mailedCode: () => lastCode(first, 'bob@example.com'),
  })
  expect(await belongingsOf(moved, plc.url)).toEqual(before)

  // The directory has changed; then that it is active, who it is, and a head that the new key has signed.
  const [looked, ...told] = await there.until(4)
  expect(looked).toMatchObject({ type: '#identity', body: { did: bob.assertDid } })
  expect(looked!.body).not.toHaveProperty('handle')
  expect(told.map(({ type, body }) => [type, body['did']])).toEqual(
    ['#account', '#identity', '#sync'].map((type) => [type, bob.assertDid]),
  )
  expect(told[0]!.body).toMatchObject({ active: true })
  expect(told[1]!.body).toMatchObject({ handle: 'bob.test' })
  const { commit } = await verifiedRepo(moved, plc.url)
  expect(told[2]!.body['rev']).toBe(commit.rev)
  expect(commit.rev > old.commit.rev).toBe(true)
  expect((await readCarWithRoot(told[2]!.body['blocks'] as Uint8Array)).root.toString()).toBe(
    (await moved.com.atproto.sync.getLatestCommit({ did: bob.assertDid })).data.cid,
  )
  // The old server says that it left, and keeps its repository to itself.
  const left = await relay.until(1)
  expect(left.at(-1)).toMatchObject({
    type: '#account',
    body: { did: bob.assertDid, active: false, status: 'deactivated' },
  })
  expect(await xrpc(first, `com.atproto.sync.getRepo?did=${bob.assertDid}`)).toMatchObject({
    status: 400,
    body: { error: 'RepoDeactivated' },
  })
  expect(await xrpc(first, 'com.atproto.identity.resolveHandle?handle=bob.test')).toMatchObject({ status: 400 })
  expect(await xrpc(second, 'com.atproto.identity.resolveHandle?handle=bob.test')).toMatchObject({
    body: { did: bob.assertDid },
  })

  await moved.post({ text: 'I live here now' })
  const events = await consumer.until((seen) => seen.some(({ event }) => event === 'create'))
  expect(events.map(({ event }) => event)).toEqual(['identity', 'account', 'identity', 'sync', 'create'])
  expect(consumer.faults).toEqual([])
  await consumer.stop()
  for (const reader of [there, relay]) reader.close()
  expect(await resolverAt(plc.url).did.resolve(bob.assertDid)).toMatchObject({
    alsoKnownAs: ['at://bob.test'],
    service: [{ serviceEndpoint: second.url }],
  })
})

test('who comes back finds the account as it is now', async () => {
  const carol = await signUp('carol')
  await settleIn(carol)
  const away = await moveAccount({
    from: carol,
    to: second.url,
    handle: 'carol.test',
    email: 'carol@example.com',
    password: PASSWORD,
    mailedCode: () => lastCode(first, 'carol@example.com'),
  })
  await away.post({ text: 'away from home' })
  const before = await belongingsOf(away, plc.url)

  // The old server still has the account, so it is not made anew: the archive is imported over what is there.
  const { data: car } = await away.com.atproto.sync.getRepo({ did: carol.assertDid })
  await carol.com.atproto.repo.importRepo(car, { encoding: 'application/vnd.ipld.car' })
  await away.com.atproto.identity.requestPlcOperationSignature()
  const { data: credentials } = await carol.com.atproto.identity.getRecommendedDidCredentials()
  const { data: signed } = await away.com.atproto.identity.signPlcOperation({
    token: await lastCode(second, 'carol@example.com'),
    ...credentials,
  })
  await carol.com.atproto.identity.submitPlcOperation({ operation: signed.operation })
  await carol.com.atproto.server.activateAccount()
  await away.com.atproto.server.deactivateAccount({})
  expect(await belongingsOf(carol, plc.url)).toEqual(before)
})
