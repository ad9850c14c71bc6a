/** Who is taken for the owner of an account on the routes of `/v1`, and how everybody else is refused. */
import { beforeAll, expect, test } from 'bun:test'
import { openWalletSession } from '../../../src/features/access/sessions/sessions.ts'
import { addDevice, revokeDevices } from '../../../src/features/access/wallet-devices/wallet-devices.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { createAccount, logIn, type TestAccount } from '../../support/clients/account.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { OAuthClient } from '../../support/clients/oauth-client.ts'
import { ADMIN_TOKEN } from '../../support/servers/pds.ts'
import { useWorld } from '../../support/world.ts'

let alice: TestAccount
const { pds } = useWorld({ config: { rateLimit: { enabled: false } } })
beforeAll(async () => {
  alice = await createAccount(pds, 'alice')
})

const openSession = (did: string, byPassword = false): Promise<string> =>
  pds.ctx.db.transaction((tx) =>
    openWalletSession(
      tx,
      did as Did,
      { byPassword },
      { openedAt: pds.clock.now(), openedWith: null, openedFrom: null },
    ),
  )

/** An owner's route. Alice has a did:plc, so whoever is taken for her is told that only a did:web can be hosted. */
const asOwner = async (headers: Record<string, string>): Promise<string> => {
  const { status, body } = await request(`${pds.url}/v1/did-web/hosting`, { json: { enabled: true }, headers })
  return `${status} ${body.error.code}`
}
const OWNER = '400 InvalidRequest'

test('the owner is who holds a session of a wallet, or one with the scope of the account', async () => {
  expect(await asOwner(bearer(await openSession(alice.did)))).toBe(OWNER)
  expect(await asOwner(bearer(alice.accessJwt))).toBe(OWNER)
})

test('everybody else is refused by the name of what is wrong', async () => {
  const made = await alice.call('com.atproto.server.createAppPassword', { json: { name: 'phone', privileged: true } })
  const phone = await logIn(pds, alice, made.body.password)
  const old = alice.accessJwt
  expect(await asOwner({})).toBe('401 AUTHENTICATION_REQUIRED')
  expect(await asOwner(bearer('A'.repeat(43)))).toBe('401 INVALID_TOKEN')
  expect(await asOwner(bearer(phone.accessJwt))).toBe('401 INVALID_TOKEN')
  expect(await asOwner(bearer(alice.refreshJwt))).toBe('401 INVALID_TOKEN')
  expect(await asOwner({ authorization: 'Bearer a b' })).toBe('401 INVALID_TOKEN')
  const app = new OAuthClient(pds)
  const { access_token: granted } = await app.signIn({ identifier: alice.handle, password: alice.password })
  expect(await app.call(granted, '/v1/did-web/hosting', {}, { json: { enabled: true } })).toMatchObject({
    status: 403,
    body: { error: { code: 'InsufficientScope' } },
  })
  expect(await asOwner(bearer(granted))).toBe('401 INVALID_TOKEN')
  pds.clock.advance({ secs: 3 * 3600 })
  expect(await asOwner(bearer(old))).toBe('401 TOKEN_EXPIRED')
  alice = await logIn(pds, alice, alice.password)
})

test('the session of a wallet lasts a year, and opens no method of XRPC', async () => {
  const token = await openSession(alice.did)
  const { status, body } = await request(`${pds.url}/xrpc/com.atproto.server.getSession`, { headers: bearer(token) })
  expect({ status, error: body.error }).toEqual({ status: 400, error: 'InvalidToken' })
  pds.clock.advance({ secs: 364 * 86_400 })
  expect(await asOwner(bearer(token))).toBe(OWNER)
  pds.clock.advance({ secs: 86_400 })
  expect(await asOwner(bearer(token))).toBe('401 INVALID_TOKEN')
  expect(await pds.runSweep('expired-sessions')).toMatchObject({ deleted: expect.any(Number) })
  alice = await logIn(pds, alice, alice.password)
})

test('a new password ends the sessions that the old one opened, and a takedown ends all', async () => {
  const bob = await createAccount(pds, 'bob')
  const [byPassword, byKey] = [await openSession(bob.did, true), await openSession(bob.did)]
  const held = async () => [await asOwner(bearer(byPassword)), await asOwner(bearer(byKey))]
  expect(await held()).toEqual([OWNER, OWNER])
  await request(`${pds.url}/xrpc/com.atproto.admin.updateAccountPassword`, {
    json: { did: bob.did, password: 'another long password' },
    headers: { authorization: `Basic ${btoa(`admin:${ADMIN_TOKEN}`)}` },
  })
  expect((await held())[0]).toBe('401 INVALID_TOKEN')
  const taken = await request(`${pds.url}/xrpc/com.atproto.admin.updateSubjectStatus`, {
    json: { subject: { $type: 'com.atproto.admin.defs#repoRef', did: bob.did }, takedown: { applied: true, ref: 'x' } },
    headers: { authorization: `Basic ${btoa(`admin:${ADMIN_TOKEN}`)}` },
  })
  expect(taken.status).toBe(200)
  expect(await asOwner(bearer(byKey))).toMatch(/^401 /)
  expect(await asOwner(bearer(bob.accessJwt))).toMatch(/^401 /)
})

test('a device is told where its server is, and nothing of another device', async () => {
  const device = () =>
    pds.ctx.db.transaction((tx) =>
      addDevice(tx, { owner: alice.did, publicKey: 'zKey', platform: 'ios', openedWith: null }, pds.clock.now()),
    )
  const [phone, tablet] = [await device(), await device()]
  const ask = (id: string, token: string) => request(`${pds.url}/v1/devices/${id}/pds`, { headers: bearer(token) })
  const websocketUrl = pds.url.replace('http', 'ws')
  expect(await ask(phone.deviceId, phone.deviceToken)).toMatchObject({
    status: 200,
    body: { pdsUrl: pds.url, websocketUrl },
  })
  expect(await ask(tablet.deviceId, phone.deviceToken)).toMatchObject({
    status: 401,
    body: { error: { code: 'UNAUTHORIZED' } },
  })
  expect(await asOwner(bearer(phone.deviceToken))).toBe('401 INVALID_TOKEN')
  await pds.ctx.db.transaction((tx) => revokeDevices(tx, alice.did, { except: tablet.deviceId, now: pds.clock.now() }))
  expect((await ask(phone.deviceId, phone.deviceToken)).status).toBe(401)
  expect((await ask(tablet.deviceId, tablet.deviceToken)).status).toBe(200)
})
