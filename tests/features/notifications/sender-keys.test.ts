/** The keys with which pushes are sealed: who gets them, how they change, and what is sealed with them. */
import { describe, expect, test } from 'bun:test'
import { Secret } from '../../../src/base/secret.ts'
import { fanOutSender, sealFor, senderNumbered } from '../../../src/features/push/notifications/sender-keys.ts'
import { rewrap } from '../../../src/platform/secrets/rewrap.ts'
import { Vault } from '../../../src/platform/secrets/vault.ts'
import { createAccount, logIn } from '../../support/clients/account.ts'
import { confirmedAgent } from '../../support/clients/agent.ts'
import { startCluster } from '../../support/servers/cluster.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { OAuthClient } from '../../support/clients/oauth-client.ts'
import { OperatorDevice } from '../../support/clients/operator-device.ts'
import { ADMIN_TOKEN, MASTER_KEY, startPds, type TestPds } from '../../support/servers/pds.ts'
import { PushDevice } from '../../support/clients/push-device.ts'
import { walletSession } from '../../support/clients/wallet.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'

const RELAY = 'ab'.repeat(32)
const PATH = '/v1/notifications/sender-keys'
const ADMIN_PATH = '/v1/admin/notifications/sender-keys'
const withPushes = { notifications: { relay: RELAY }, signingKeyMasterKey: MASTER_KEY }

const { pds } = useWorld({
  config: { ...withPushes, rateLimit: { enabled: false }, agentAuth: { anonymousEnabled: true } },
})
const alice = setUp(() => createAccount(pds, 'alice'))

interface Key {
  kid: number
  publicKey: string
  state: string
}

const asked = (token = alice.accessJwt, at: TestPds = pds) => request(at.url + PATH, { headers: bearer(token) })
const published = async (): Promise<Key[]> => (await asked()).body.keys
const operate = (action: string, at: TestPds = pds) =>
  request(`${at.url}${ADMIN_PATH}${action}`, {
    method: action === '/all' || action === '' ? 'GET' : 'POST',
    headers: bearer(ADMIN_TOKEN),
  })
const count = (at: TestPds = pds) => at.count('push_sender_key')
const fanOut = (at: TestPds = pds) => at.ctx.db.transaction((tx) => fanOutSender(at.ctx, tx))
const numbers = (keys: Key[]) => keys.map(({ kid }) => kid)

test('the first who asks has one key made, and of many who ask at once all get the same', async () => {
  expect(await count()).toBe(0)
  const answers = await Promise.all([asked(), asked(), fanOut(), operate(''), asked()])
  expect(await count()).toBe(1)
  const [first] = answers
  expect(first).toMatchObject({
    status: 200,
    body: { keys: [{ kid: 1, publicKey: expect.stringMatching(/^did:key:zDn/) }] },
  })
  expect(Object.keys(first.body.keys[0])).toEqual(['kid', 'publicKey'])
  for (const answer of [answers[1], answers[3], answers[4]]) expect(answer.body).toEqual(first.body)
  expect(answers[2]?.kid).toBe(1)
})

test('servers that share a database make one key together', async () => {
  await using cluster = await startCluster(2, withPushes)
  const answers = await Promise.all([...cluster.nodes, ...cluster.nodes].map((node) => operate('', node)))
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200])
  for (const { body } of answers) expect(body).toEqual(answers[0]!.body)
  await Promise.all(cluster.nodes.map((node) => operate('/rotate', node)))
  for (const node of cluster.nodes) expect(numbers((await operate('', node)).body.keys)).toEqual([3, 2, 1])
})

test('sessions of the account and of its wallets get the keys, and nobody else does', async () => {
  expect((await asked(await walletSession(pds, alice.did))).status).toBe(200)
  const insufficient = { status: 403, body: { error: { code: 'InsufficientScope' } } }
  for (const privileged of [false, true]) {
    const made = await alice.call('com.atproto.server.createAppPassword', {
      json: { name: `app ${privileged}`, privileged },
    })
    const app = await logIn(pds, alice, made.body.password)
    expect(await asked(app.accessJwt)).toMatchObject(insufficient)
  }
  expect(await asked((await confirmedAgent(pds, alice)).accessToken)).toMatchObject(insufficient)
  const oauth = new OAuthClient(pds)
  const { access_token: token } = await oauth.signIn({ identifier: alice.handle, password: alice.password })
  expect(await oauth.call(token, PATH)).toMatchObject(insufficient)
  expect(await asked(ADMIN_TOKEN)).toMatchObject({ status: 401 })
  expect(await request(pds.url + PATH)).toMatchObject({ status: 401 })
})

test('a paired device of an operator gets the same answer', async () => {
  const device = await OperatorDevice.paired(pds)
  expect((await device.request(ADMIN_PATH)).body).toEqual((await asked()).body)
})

describe('what is sealed', () => {
  const message = { type: 'test', title: 'A title', body: 'A text.', data: { id: 'x' } }

  test('opens with the published key of its number, and each seal is fresh', async () => {
    const device = new PushDevice()
    const sender = (await fanOut())!
    const seals = await Promise.all([1, 2, 3].map(() => sealFor(sender, device.publicKey, message)))
    const [{ kid, publicKey }] = (await published()) as [Key]
    for (const sealed of seals) {
      expect(sealed?.kid).toBe(kid)
      expect(JSON.parse(await device.open(sealed!, publicKey))).toMatchObject(message)
    }
    expect(new Set(seals.map((sealed) => sealed!.enc)).size).toBe(3)
    expect(new Set(seals.map((sealed) => sealed!.ct)).size).toBe(3)
  })

  test('is nothing if the message is too large', async () => {
    expect(
      await sealFor((await fanOut())!, new PushDevice().publicKey, { ...message, body: 'x'.repeat(2700) }),
    ).toBeNull()
  })

  test('an event goes on with the key with which it began, until that is revoked', async () => {
    const begun = (await fanOut())!
    expect((await operate('/rotate')).status).toBe(200)
    const next = (await fanOut())!
    expect(next.kid).toBe(begun.kid + 1)
    expect(await senderNumbered(pds.ctx, begun.kid)).toEqual(begun)
    expect((await operate(`/${begun.kid}/revoke`)).status).toBe(200)
    expect(await senderNumbered(pds.ctx, begun.kid)).toEqual(next)
  })
})

describe('operators', () => {
  test('a rotation publishes the new key before the old one, and each number is used once', async () => {
    const before = await published()
    const { body } = await operate('/rotate')
    const after = await published()
    expect(after.slice(1)).toEqual(before)
    expect(after[0]!.kid).toBe(Math.max(...numbers(body.keys)))
    expect(body.keys.filter(({ state }: Key) => state === 'active')).toMatchObject([
      { kid: after[0]!.kid, publicKey: after[0]!.publicKey },
    ])
    await Promise.all([operate('/rotate'), operate('/rotate'), asked(), fanOut()])
    const { keys } = (await operate('/all')).body
    expect(numbers(keys)).toEqual(Array.from(keys, (_, i) => keys.length - i))
    expect(keys.filter(({ state }: Key) => state === 'active')).toHaveLength(1)
  })

  test('the key that seals cannot be retired without a rotation', async () => {
    const [active, retired] = (await published()) as [Key, Key]
    expect(await operate(`/${active.kid}/retire`)).toMatchObject({ status: 409, body: { error: { code: 'CONFLICT' } } })
    expect((await fanOut())!.kid).toBe(active.kid)
    expect((await operate(`/${retired.kid}/retire`)).status).toBe(200)
    await operate('/rotate')
    expect((await operate(`/${active.kid}/retire`)).status).toBe(200)
  })

  test('a revoked key is published no longer, its secret is gone, and it does not come back', async () => {
    const [{ kid }] = (await published()) as [Key]
    expect(await operate(`/${kid}/revoke`)).toMatchObject({ status: 200 })
    expect(await operate(`/${kid}/revoke`)).toMatchObject({ status: 200 })
    expect(await pds.rows('push_sender_key', { kid }, ['state', 'secret_wrapped'])).toEqual([
      { state: 'revoked', secret_wrapped: null },
    ])
    expect(await operate(`/${kid}/retire`)).toMatchObject({ status: 409 })
    // Nothing seals now, so that the next who asks has a key made.
    expect(numbers(await published())).toEqual(expect.arrayContaining([kid + 1]))
    expect(numbers(await published())).not.toContain(kid)
    const [shown] = (await operate('/all')).body.keys.filter((key: Key) => key.kid === kid)
    expect(shown).toEqual({ kid, state: 'revoked', createdAt: expect.any(String), changedAt: expect.any(String) })
    const { events } = (
      await request(`${pds.url}/v1/admin/audit?action=sender_key_revoked&subject=${kid}`, {
        headers: bearer(ADMIN_TOKEN),
      })
    ).body
    expect(events).toMatchObject([{ actor: 'master-token' }])
  })

  test('there is no key of a number that none has, and none whose number is none', async () => {
    for (const action of ['retire', 'revoke']) {
      expect(await operate(`/4000000000/${action}`)).toMatchObject({ status: 404 })
      for (const kid of ['0', '-1', '1.0', 'x', '99999999999'])
        expect(await operate(`/${kid}/${action}`)).toMatchObject({
          status: 400,
          body: { error: { code: 'InvalidRequest' } },
        })
    }
  })

  test('the list that devices fetch is bounded', async () => {
    await using other = await startPds(withPushes)
    const statuses: number[] = []
    for (let i = 0; i < 34; i++) statuses.push((await operate('/rotate', other)).status)
    expect(statuses).toEqual([...Array.from({ length: 32 }, () => 200), 409, 409])
    expect((await operate('', other)).body.keys).toHaveLength(32)
    await operate('/1/revoke', other)
    expect((await operate('/rotate', other)).status).toBe(200)
    expect(numbers((await operate('', other)).body.keys)).toEqual(Array.from({ length: 32 }, (_, i) => 33 - i))
  })
})

test('without a relay there are no pushes to verify; keys can still be revoked', async () => {
  await using other = await startPds({ signingKeyMasterKey: MASTER_KEY })
  const bob = await createAccount(other, 'bob')
  const unavailable = { status: 501, body: { error: { code: 'MethodNotImplemented' } } }
  expect(await asked(bob.accessJwt, other)).toMatchObject(unavailable)
  expect(await operate('', other)).toMatchObject(unavailable)
  expect(await operate('/rotate', other)).toMatchObject(unavailable)
  expect(await count(other)).toBe(0)
  expect(await operate('/all', other)).toMatchObject({ status: 200, body: { keys: [] } })
  await other.restart(withPushes)
  await asked(bob.accessJwt, other)
  await other.restart({ notifications: { relay: null }, signingKeyMasterKey: MASTER_KEY })
  expect(await operate('/1/revoke', other)).toMatchObject({
    status: 200,
    body: { keys: [{ kid: 1, state: 'revoked' }] },
  })
})

test('without a configured master key no key is made, and the answer is never an empty list', async () => {
  await using other = await startPds({ notifications: { relay: RELAY } }, { alone: 'it has no master key' })
  const bob = await createAccount(other, 'bob')
  const unavailable = { status: 503, body: { error: { code: 'SERVICE_UNAVAILABLE' } } }
  expect(await asked(bob.accessJwt, other)).toMatchObject(unavailable)
  expect(await operate('', other)).toMatchObject(unavailable)
  expect(await operate('/rotate', other)).toMatchObject(unavailable)
  expect(await fanOut(other)).toBeNull()
  expect(await count(other)).toBe(0)
})

test('a key that does not open is left out and logged; if none opens, nothing is published or sealed', async () => {
  await using other = await startPds(withPushes)
  const bob = await createAccount(other, 'bob')
  await operate('/rotate', other)
  await operate('/rotate', other)
  const spoil = (kid: number) => other.damage('push_sender_key', { kid }, { secret_wrapped: 'A'.repeat(80) })
  await spoil(2)
  expect(numbers((await asked(bob.accessJwt, other)).body.keys)).toEqual([1])
  expect(other.log.filter(({ level, kid }) => level === 'error' && kid === 2).length).toBeGreaterThan(0)
  expect((await operate('/all', other)).body.keys).toMatchObject([
    { kid: 2, state: 'active' },
    { kid: 1, state: 'retired' },
  ])
  expect(await fanOut(other)).toBeNull()
  await spoil(1)
  expect(await asked(bob.accessJwt, other)).toMatchObject({
    status: 503,
    body: { error: { code: 'SERVICE_UNAVAILABLE' } },
  })
  expect(await count(other)).toBe(2)
  // The remedy.
  await operate('/rotate', other)
  expect(numbers((await asked(bob.accessJwt, other)).body.keys)).toEqual([3])
  expect((await fanOut(other))!.kid).toBe(3)
})

test('the keys stay the same when the master key changes, and over a restart', async () => {
  await using other = await startPds(withPushes)
  for (let i = 0; i < 12; i++) await operate('/rotate', other)
  await operate('/3/revoke', other)
  const before = (await operate('', other)).body
  expect(before.keys).toHaveLength(11)
  const next = new Uint8Array(32).fill(9)
  const counts = await rewrap(other.ctx.db, new Vault(MASTER_KEY.reveal()), new Vault(next))
  expect(counts['push_sender_key.secret_wrapped']).toBe(11)
  await other.restart({ ...withPushes, signingKeyMasterKey: new Secret(next) })
  expect((await operate('', other)).body).toEqual(before)
})
