/**
 * How devices register for pushes: who may, what a registration consists of, and when it is over. The relay is away.
 */
import { beforeAll, describe, expect, test } from 'bun:test'
import { deleteAccount } from '../../../src/features/identity/account-changes/account-changes.ts'
import { enqueuePush } from '../../../src/features/push/notifications/notifications.ts'
import { openWalletSession } from '../../../src/features/access/sessions/sessions.ts'
import type { AccessEnd } from '../../../src/http/feature.ts'
import { endAccess } from '../../../src/http/hooks.ts'
import { formatDidKey, signingKey } from '../../../src/protocol/keys.ts'
import { opaqueTokenHash } from '../../../src/protocol/opaque-token.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { registerAgent, withAgents } from '../../support/clients/registered-agent.ts'
import { createAccount, logIn, type TestAccount } from '../../support/clients/account.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { OAuthClient } from '../../support/clients/oauth-client.ts'
import { OperatorDevice } from '../../support/clients/operator-device.ts'
import { ADMIN_TOKEN, MASTER_KEY, startPds } from '../../support/servers/pds.ts'
import { PushDevice } from '../../support/clients/push-device.ts'
import { useWorld } from '../../support/world.ts'
import { transferAway, walletSession } from '../../support/clients/wallet.ts'
import { beforeTransaction } from '../../support/interruptions.ts'
import { atOneNode } from '../../support/turns.ts'

const RELAY = 'ea4a6c63e29c520abef5507b132ec5f9954776aebebe7b92421eea691446d22c'
const REGISTER = '/v1/notifications/register'
const ADMIN_REGISTER = '/v1/admin/notifications/register'

let alice: TestAccount
let ben: TestAccount
const { pds } = useWorld({
  config: {
    notifications: { relay: RELAY },
    signingKeyMasterKey: MASTER_KEY,
    rateLimit: { enabled: false },
    agentAuth: withAgents,
  },
})
beforeAll(async () => {
  ;[alice, ben] = [await createAccount(pds, 'alice'), await createAccount(pds, 'ben')]
})

const key = new PushDevice().publicKey
let made = 0
/** A registration like no other, with changes. */
const asked = (changes: Record<string, unknown> = {}) => ({
  deviceUuid: `device ${++made}`,
  notificationPublicKey: key,
  apnsToken: (1_000_000 + made).toString(16),
  apnsTopic: 'org.example.wallet',
  ...changes,
})
const register = (json: unknown, headers: Record<string, string> = bearer(alice.accessJwt)) =>
  request(`${pds.url}${REGISTER}`, { json, headers })
const remove = (deviceUuid: string, headers: Record<string, string> = bearer(alice.accessJwt)) =>
  request(`${pds.url}${REGISTER}/${encodeURIComponent(deviceUuid)}`, { method: 'DELETE', headers })
const rows = async (owner: string) => {
  const found = await pds.rows('push_registration', { owner })
  return found.map(({ device_id: device, token, handle, is_ping: ping }) => ({ device, token, handle, ping }))
}
const devicesOf = async (owner: string) => (await rows(owner)).map(({ device }) => device)
const giveHandle = (token: string, handle: string) => pds.damage('push_registration', { token }, { handle })
/** What waits to be told to the relay, oldest first. */
const waiting = async (kind: string) => {
  const steps = await pds.rows('step', { kind })
  return steps.map((step) => JSON.parse(Buffer.from(pds.ctx.vault.unwrap(step.payload_wrapped)).toString()))
}
const drops = async () => (await waiting('push-handle')).flatMap(({ ask, handle }) => (ask === 'drop' ? [handle] : []))

test('a device registers and is told that the relay will be asked; a repeat replaces everything', async () => {
  const { did } = await createAccount(pds, 'repeat')
  const headers = bearer((await logIn(pds, { handle: 'repeat.test', email: '' }, alice.password)).accessJwt)
  const first = asked({ apnsToken: 'AbCd' })
  expect(await register(first, headers)).toMatchObject({ status: 200, body: { status: 'pending' } })
  expect(await rows(did)).toEqual([{ device: first.deviceUuid, token: 'abcd', handle: null, ping: 0 }])
  await giveHandle('abcd', 'a handle')
  expect(await register({ ...first, ping: true }, headers)).toMatchObject({ status: 200, body: { status: 'pending' } })
  expect(await rows(did)).toEqual([{ device: first.deviceUuid, token: 'abcd', handle: null, ping: 1 }])
  expect(await waiting('push-handle')).toEqual([{ ask: 'register', token: 'abcd', topic: 'org.example.wallet' }])
  expect(await drops()).toEqual([])

  await giveHandle('abcd', 'an old handle')
  expect(await register({ ...first, apnsToken: 'ef' }, headers)).toMatchObject({ status: 200 })
  expect(await waiting('push-handle')).toEqual([
    { ask: 'drop', handle: 'an old handle' },
    { ask: 'register', token: 'ef', topic: 'org.example.wallet' },
  ])
  expect(await remove(first.deviceUuid, headers)).toMatchObject({ status: 200, body: { status: 'deleted' } })
  expect(await remove(first.deviceUuid, headers)).toMatchObject({ status: 200, body: { status: 'absent' } })
  expect(await waiting('push-handle')).toEqual([{ ask: 'drop', handle: 'an old handle' }])
})

const k256 = formatDidKey(signingKey('k256', new Uint8Array(32).fill(1)).publicKey)
const wrong: Record<string, unknown[]> = {
  deviceUuid: [undefined, '', 'x'.repeat(129), 7, null],
  notificationPublicKey: [undefined, '', 'did:key:z', key.slice('did:key:'.length), k256, `${key}1`, {}],
  apnsToken: [undefined, '', 'a'.repeat(201), 'xyz', 'ab cd', 5],
  apnsTopic: [undefined, '', 'a'.repeat(201), 'a_b', 'a b', 'ä', []],
  ping: ['true', 1, null],
}
test.each(
  Object.entries(wrong).flatMap(([member, values]) =>
    values.map((value) => [member, JSON.stringify(value) ?? 'missing', value] as const),
  ),
)('%s may not be %s', async (member, _shown, value) => {
  const before = await devicesOf(alice.did)
  expect(await register(asked({ [member]: value }))).toMatchObject({
    status: 400,
    body: { error: { code: 'InvalidRequest', message: expect.stringContaining(member) } },
  })
  expect(await devicesOf(alice.did)).toEqual(before)
})

test('the longest values are taken', async () => {
  const { deviceUuid } = asked()
  const longest = {
    deviceUuid: deviceUuid.padEnd(128, 'ü'),
    apnsToken: 'F'.repeat(200),
    apnsTopic: 'Az0.-'.repeat(40),
    ping: false,
  }
  expect(await register(asked(longest))).toMatchObject({ status: 200 })
  expect(await remove(longest.deviceUuid)).toMatchObject({ body: { status: 'deleted' } })
})

describe('who may register', () => {
  test('the account itself, by its session or that of a wallet', async () => {
    const wallet = await pds.ctx.db.transaction((tx) =>
      openWalletSession(
        tx,
        alice.did as Did,
        { byPassword: false },
        { openedAt: pds.clock.now(), openedWith: null, openedFrom: null },
      ),
    )
    const device = asked()
    expect(await register(device, bearer(wallet))).toMatchObject({ status: 200 })
    expect(await remove(device.deviceUuid, bearer(wallet))).toMatchObject({ body: { status: 'deleted' } })
  })

  test('no agent, no app password and no app', async () => {
    const headers: Record<string, string>[] = [bearer((await registerAgent(pds, alice)).token)]
    for (const privileged of [true, false]) {
      const { body } = await alice.call('com.atproto.server.createAppPassword', {
        json: { name: `phone ${privileged}`, privileged },
      })
      headers.push(bearer((await logIn(pds, alice, body.password)).accessJwt))
    }
    const refused = { status: 403, body: { error: { code: 'InsufficientScope' } } }
    const device = asked()
    for (const each of headers) {
      expect(await register(device, each)).toMatchObject(refused)
      expect(await remove(device.deviceUuid, each)).toMatchObject(refused)
    }
    const app = new OAuthClient(pds)
    const { access_token: granted } = await app.signIn({ identifier: alice.handle, password: alice.password })
    expect(await app.call(granted, REGISTER, {}, { json: device })).toMatchObject(refused)
    expect(await devicesOf(alice.did)).toEqual([])
  })

  test('nobody whose account was taken down', async () => {
    const { did, accessJwt } = await createAccount(pds, 'gone')
    await pds.damage('account', { did }, { takedown_ref: 'for a reason' })
    expect((await register(asked(), bearer(accessJwt))).status).toBe(401)
    expect(await devicesOf(did)).toEqual([])
  })

  test('an account does not touch the device of another', async () => {
    const device = asked()
    await register(device)
    expect(await remove(device.deviceUuid, bearer(ben.accessJwt))).toMatchObject({ body: { status: 'absent' } })
    await register({ ...device, apnsToken: 'beef' }, bearer(ben.accessJwt))
    expect(await rows(alice.did)).toMatchObject([{ device: device.deviceUuid, token: device.apnsToken }])
    expect(await remove(device.deviceUuid, bearer(ben.accessJwt))).toMatchObject({ body: { status: 'deleted' } })
    expect(await remove(device.deviceUuid)).toMatchObject({ body: { status: 'deleted' } })
  })
})

test('of one account the newest 20 devices are kept, and the relay forgets the others', async () => {
  const { did, accessJwt } = await createAccount(pds, 'many')
  const devices = Array.from({ length: 22 }, () => asked())
  for (const device of devices) {
    expect((await register(device, bearer(accessJwt))).status).toBe(200)
    await giveHandle(device.apnsToken, `handle ${device.deviceUuid}`)
    pds.clock.advance({ secs: 1 })
  }
  expect(await devicesOf(did)).toEqual(devices.slice(2).map(({ deviceUuid }) => deviceUuid))
  expect(await drops()).toEqual(
    expect.arrayContaining(devices.slice(0, 2).map(({ deviceUuid }) => `handle ${deviceUuid}`)),
  )
  // A repeat is none of another device.
  await register(devices[5], bearer(accessJwt))
  expect((await devicesOf(did)).toSorted()).toEqual(
    devices
      .slice(2)
      .map(({ deviceUuid }) => deviceUuid)
      .toSorted(),
  )
})

test('a handle that two accounts share is dropped with the last of them', async () => {
  const phone = asked()
  for (const account of [alice, ben]) await register(phone, bearer(account.accessJwt))
  await giveHandle(phone.apnsToken, 'shared')
  expect(await remove(phone.deviceUuid)).toMatchObject({ body: { status: 'deleted' } })
  expect(await drops()).not.toContain('shared')
  expect(await remove(phone.deviceUuid, bearer(ben.accessJwt))).toMatchObject({ body: { status: 'deleted' } })
  expect(await drops()).toContain('shared')
})

test('registrations end with the account, and those of others stay', async () => {
  const { did, accessJwt } = await createAccount(pds, 'leaver')
  const [own, shared] = [asked(), asked()]
  await register(own, bearer(accessJwt))
  for (const token of [accessJwt, ben.accessJwt]) await register(shared, bearer(token))
  await giveHandle(own.apnsToken, 'own')
  await giveHandle(shared.apnsToken, 'kept')
  expect(
    await pds.ctx.db.transaction((tx) => enqueuePush(pds.ctx, tx, did as Did, { type: 't', title: 'a', body: 'b' })),
  ).toBe(2)
  expect(await deleteAccount({ ctx: pds.ctx }, did as Did)).toBe(true)
  expect(await rows(did)).toEqual([])
  expect(await waiting('push')).toEqual([])
  expect(await drops()).toContain('own')
  expect(await drops()).not.toContain('kept')
  expect(await rows(ben.did)).toMatchObject([{ device: shared.deviceUuid, handle: 'kept' }])
  await remove(shared.deviceUuid, bearer(ben.accessJwt))
})

test('registrations end with all sessions, so that the device of an intruder is told nothing more; a new password leaves them', async () => {
  const did = (await createAccount(pds, 'carol')).did as Did
  const end = (why: AccessEnd) => pds.ctx.db.transaction((tx) => endAccess(pds.ctx, tx, did, why))
  const registered = async () => {
    const device = asked()
    const token = await walletSession(pds, did)
    expect((await register(device, bearer(token))).status).toBe(200)
    await giveHandle(device.apnsToken, device.deviceUuid)
    return device.deviceUuid
  }
  const kept = await registered()
  for (const why of ['new_password', 'taken_down', 'restored'] as const) await end(why)
  expect(await devicesOf(did)).toEqual([kept])
  for (const ends of [() => end('reset_password'), () => end('revoked'), () => transferAway(pds, did)]) {
    const device = await registered()
    await ends()
    expect(await devicesOf(did)).toEqual([])
    expect(await drops()).toContain(device)
  }
  expect(await drops()).toContain(kept)
})

test('devices that an operator ends with all credentials are counted, and that is on record', async () => {
  const { did, accessJwt } = await createAccount(pds, 'dana')
  await register(asked(), bearer(accessJwt))
  await pds.lose('session', { did })
  const revoke = () =>
    request(`${pds.url}/v1/admin/accounts/${did}/revoke-credentials`, { json: {}, headers: bearer(ADMIN_TOKEN) })
  expect((await revoke()).body).toMatchObject({ sessionsRevoked: 0, pushDevicesRevoked: 1 })
  expect((await revoke()).body).toMatchObject({ pushDevicesRevoked: 0 })
  const audit = await request(`${pds.url}/v1/admin/audit?subject=${did}`, { headers: bearer(ADMIN_TOKEN) })
  expect(audit.body.events).toMatchObject([{ action: 'credentials_revoked', outcome: 'ok' }])
})

test('a session that ends while a device is removed removes nothing', async () => {
  using _ = atOneNode(pds, 'the transactions of one node are interrupted')
  const device = asked()
  await register(device)
  const token = await walletSession(pds, alice.did)
  using __ = beforeTransaction(pds, () => pds.lose('wallet_session', { token_hash: opaqueTokenHash(token)! }))
  expect(await remove(device.deviceUuid, bearer(token))).toMatchObject({ status: 401 })
  expect(await devicesOf(alice.did)).toContain(device.deviceUuid)
  await remove(device.deviceUuid)
})

describe('devices of operators', () => {
  test('register by a request that they sign, and the admin token does not suffice', async () => {
    const device = await OperatorDevice.paired(pds)
    const { deviceUuid, ...json } = asked()
    expect(await device.request(ADMIN_REGISTER, { json })).toMatchObject({ status: 200, body: { status: 'pending' } })
    expect(await rows('operators')).toEqual([{ device: device.id, token: json.apnsToken, handle: null, ping: 0 }])
    // What it calls itself counts for nothing.
    expect(await device.request(ADMIN_REGISTER, { json: { ...json, deviceUuid } })).toMatchObject({ status: 200 })
    expect(await devicesOf('operators')).toEqual([device.id])
    expect(await request(`${pds.url}${ADMIN_REGISTER}`, { json, headers: bearer(ADMIN_TOKEN) })).toMatchObject({
      status: 400,
      body: { error: { code: 'InvalidRequest' } },
    })
    expect(await device.request(ADMIN_REGISTER, { json: { ...json, apnsToken: 'no' } })).toMatchObject({ status: 400 })
  })

  test('a device of an operator is told nothing once it is revoked', async () => {
    const [device, other] = [await OperatorDevice.paired(pds), await OperatorDevice.paired(pds)]
    for (const each of [device, other]) await each.request(ADMIN_REGISTER, { json: asked() })
    const path = `/v1/admin/devices/${device.id}/revoke`
    expect(await request(`${pds.url}${path}`, { method: 'POST', headers: bearer(ADMIN_TOKEN) })).toMatchObject({
      status: 200,
    })
    expect(await devicesOf('operators')).not.toContain(device.id)
    expect(await devicesOf('operators')).toContain(other.id)
    expect(await device.request(ADMIN_REGISTER, { json: asked() })).toMatchObject({ status: 403 })
  })
})

test('without a relay nobody can register, and everybody can still end it', async () => {
  await using quiet = await startPds()
  const carol = await createAccount(quiet, 'carol')
  const headers = bearer(carol.accessJwt)
  const unknown = { status: 501, body: { error: { code: 'MethodNotImplemented' } } }
  expect(await request(`${quiet.url}${REGISTER}`, { json: asked(), headers })).toMatchObject(unknown)
  const device = await OperatorDevice.paired(quiet)
  expect(await device.request(ADMIN_REGISTER, { json: asked() })).toMatchObject(unknown)
  await quiet.plant('push_registration', {
    owner: carol.did,
    device_id: 'phone',
    public_key: key,
    token: 'ab',
    topic: 'org.example',
    is_ping: 0,
    handle: 'handle',
    registered_at: 0,
  })
  expect(await request(`${quiet.url}${REGISTER}/phone`, { method: 'DELETE', headers })).toMatchObject({
    body: { status: 'deleted' },
  })
  expect(await request(`${quiet.url}${REGISTER}/phone`, { method: 'DELETE', headers })).toMatchObject({
    body: { status: 'absent' },
  })
  expect((await quiet.rows('step')).filter(({ kind }) => kind.startsWith('push'))).toEqual([])
})

test('an account registers 30 times in an hour', async () => {
  await using limited = await startPds({ notifications: { relay: RELAY } })
  using _ = atOneNode(limited, 'the last request of a limit is counted, and each node may let one more through')
  const { accessJwt } = await createAccount(limited, 'eager')
  const once = () => request(`${limited.url}${REGISTER}`, { json: asked(), headers: bearer(accessJwt) })
  for (let i = 0; i < 30; i++) expect((await once()).status).toBe(200)
  expect(await once()).toMatchObject({ status: 429, body: { error: { code: 'RATE_LIMITED' } } })
})
