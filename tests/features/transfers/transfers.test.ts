/** Moving an account to another device by a code: who gets what, and what ends. */
import { beforeEach, expect, test } from 'bun:test'
import {
  cancelTransfer,
  revokeTransferDevice,
  runningTransfer,
} from '../../../src/features/identity/transfers/transfers.ts'
import { deleteAccount } from '../../../src/features/identity/account-changes/account-changes.ts'
import { opaqueTokenHash } from '../../../src/protocol/opaque-token.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { createAccount, logIn, type TestAccount } from '../../support/clients/account.ts'
import { basic, bearer, request, type Answer } from '../../support/clients/http.ts'
import { OAuthClient } from '../../support/clients/oauth-client.ts'
import { ADMIN_TOKEN } from '../../support/servers/pds.ts'
import { walletSession } from '../../support/clients/wallet.ts'
import { beforeTransaction } from '../../support/interruptions.ts'
import { atOneNode } from '../../support/turns.ts'
import { useWorld } from '../../support/world.ts'

const { pds } = useWorld({ eachTest: true, config: { rateLimit: { enabled: false } } })
let alice: TestAccount
/** The session of her wallet. */
let wallet: string
beforeEach(async () => {
  alice = await createAccount(pds, 'alice')
  wallet = await walletSession(pds, alice.did)
})

const post = (path: string, json?: object, token?: string): Promise<Answer> =>
  request(`${pds.url}/v1/transfer/${path}`, { method: 'POST', json, headers: token === undefined ? {} : bearer(token) })
const initiate = (token = wallet) => post('initiate', undefined, token)
const phone = { devicePublicKey: 'zPhone', platform: 'ios' }
const accept = (transferCode: unknown, device: object = phone) => post('accept', { transferCode, ...device })
const complete = (transferId: unknown, token?: string) => post('complete', { transferId }, token)
const operator = bearer(ADMIN_TOKEN)
const listed = async (query = '') =>
  (await request(`${pds.url}/v1/admin/transfers${query}`, { headers: operator })).body
const cancel = (id: string) => request(`${pds.url}/v1/admin/transfers/${id}/cancel`, { json: {}, headers: operator })
const audit = async () =>
  (await request(`${pds.url}/v1/admin/audit?action=transfer_cancelled`, { headers: operator })).body.events as unknown[]
const opens = async (deviceId: string, token: string) =>
  (await request(`${pds.url}/v1/devices/${deviceId}/pds`, { headers: bearer(token) })).status
/** A wallet session that lives is told that another transfer runs, or begins one. */
const isAlive = async (token: string) => (await initiate(token)).status !== 401

const begun = async (token = wallet): Promise<{ transferId: string; transferCode: string }> =>
  (await initiate(token)).body
async function accepted(token = wallet) {
  const { transferId, transferCode } = await begun(token)
  const { deviceId, deviceToken } = (await accept(transferCode)).body as { deviceId: string; deviceToken: string }
  return { transferId, transferCode, deviceId, deviceToken }
}

const conflict = { status: 409, body: { error: { code: 'CONFLICT' } } }
const invalidClaim = { status: 400, body: { error: { code: 'INVALID_CLAIM' } } }
const unauthorized = { status: 401, body: { error: { code: 'UNAUTHORIZED' } } }

test('a wallet whose session ends before it completes changes nothing', async () => {
  const { transferId } = await accepted()
  const other = await walletSession(pds, alice.did)
  using _ = atOneNode(pds, 'the transactions of one node are interrupted')
  using __ = beforeTransaction(pds, () => pds.lose('wallet_session', { token_hash: opaqueTokenHash(wallet)! }))
  expect((await complete(transferId, wallet)).status).toBe(401)
  expect(await isAlive(other)).toBe(true)
  expect((await listed()).transfers).toEqual([expect.objectContaining({ id: transferId, status: 'accepted' })])
})

test('changes nothing of the identity, which may name keys and services of other kinds', async () => {
  const log = await pds.ctx.plc.auditLog(alice.did as Did)
  const { transferId } = await accepted()
  expect((await complete(transferId, wallet)).status).toBe(200)
  expect(await pds.ctx.plc.auditLog(alice.did as Did)).toEqual(log)
})

test('a wallet begins, a device accepts with the code, the wallet completes, and the device alone remains', async () => {
  const other = await walletSession(pds, alice.did)
  const { transferId, transferCode, expiresAt, status } = (await initiate()).body
  expect(status).toBe('pending')
  expect(transferId).toMatch(/^[\da-f-]{36}$/)
  expect(transferCode).toMatch(/^[A-Z0-9]{6}$/)
  expect(Date.parse(expiresAt) - pds.clock.now()).toBeWithin(14 * 60_000, 15 * 60_000 + 1)
  const took = await accept(transferCode.toLowerCase())
  expect(took).toMatchObject({ status: 200, body: { transferId, status: 'accepted' } })
  const { deviceId, deviceToken } = took.body
  expect(deviceToken).toMatch(/^[\w-]{43}$/)
  expect(await opens(deviceId, deviceToken)).toBe(200)
  expect(await complete(transferId, wallet)).toMatchObject({ status: 200, body: { transferId, status: 'complete' } })

  for (const token of [wallet, other]) expect(await isAlive(token)).toBe(false)
  expect(
    (
      await request(`${pds.url}/xrpc/com.atproto.server.refreshSession`, {
        method: 'POST',
        headers: bearer(alice.refreshJwt),
      })
    ).status,
  ).toBe(400)
  expect((await alice.call('com.atproto.server.getSession')).status).toBe(400)
  expect(await opens(deviceId, deviceToken)).toBe(200)
  await pds.runSteps()
  expect(pds.mails.map(({ subject }) => subject).slice(-2)).toEqual([
    expect.stringContaining('taking over your account'),
    expect.stringContaining('transferred to another device'),
  ])
})

test('app passwords and authorized apps stay', async () => {
  const made = await alice.call('com.atproto.server.createAppPassword', { json: { name: 'old phone' } })
  const app = new OAuthClient(pds)
  const { refresh_token } = await app.signIn({ identifier: alice.handle, password: alice.password })
  const { transferId, deviceToken } = await accepted()
  expect((await complete(transferId, deviceToken)).status).toBe(200)
  await logIn(pds, alice, made.body.password)
  expect((await app.refresh(refresh_token)).status).toBe(200)
})

test('the device may repeat what it completed, and nobody else', async () => {
  const { transferId, deviceId, deviceToken } = await accepted()
  const answers = await Promise.all([
    complete(transferId, deviceToken),
    complete(transferId, deviceToken),
    complete(transferId, deviceToken),
  ])
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
  await pds.runSteps()
  expect(pds.mails.filter(({ subject }) => subject.includes('transferred to another device'))).toHaveLength(1)
  expect(await complete(transferId, wallet)).toMatchObject(unauthorized)
  const later = await walletSession(pds, alice.did)
  expect(await complete(transferId, later)).toMatchObject(unauthorized)
  expect(await isAlive(later)).toBe(true)
  expect(await opens(deviceId, deviceToken)).toBe(200)
})

test('the next transfer ends the token of the last device', async () => {
  const first = await accepted()
  await complete(first.transferId, first.deviceToken)
  const second = await accepted(await walletSession(pds, alice.did))
  expect(await opens(first.deviceId, first.deviceToken)).toBe(200)
  expect(await complete(second.transferId, first.deviceToken)).toMatchObject(unauthorized)
  expect((await complete(second.transferId, second.deviceToken)).status).toBe(200)
  expect(await opens(first.deviceId, first.deviceToken)).toBe(401)
  expect(await complete(first.transferId, first.deviceToken)).toMatchObject(unauthorized)
})

test('only the session of a wallet begins a transfer', async () => {
  const { deviceToken } = await accepted()
  for (const token of [alice.accessJwt, alice.refreshJwt, deviceToken, 'A'.repeat(43), ADMIN_TOKEN])
    expect(await initiate(token)).toMatchObject(unauthorized)
  expect(await post('initiate')).toMatchObject(unauthorized)
})

test('one transfer runs at a time, also when two are begun at once', async () => {
  const answers = await Promise.all([initiate(), initiate(), initiate(await walletSession(pds, alice.did))])
  expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 409, 409])
  expect(await initiate()).toMatchObject(conflict)
  const { transferCode } = answers.find(({ status }) => status === 200)!.body
  await accept(transferCode)
  expect(await initiate()).toMatchObject(conflict)
  const bob = await createAccount(pds, 'bob')
  expect((await initiate(await walletSession(pds, bob.did))).status).toBe(200)
})

test('one code admits one device, also when two show it at once', async () => {
  const { transferCode } = await begun()
  const answers = await Promise.all(
    ['zOne', 'zTwo', 'zThree'].map((devicePublicKey) => accept(transferCode, { ...phone, devicePublicKey })),
  )
  expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 409, 409])
  expect(await accept(transferCode)).toMatchObject(conflict)
})

test('codes that are unknown, expired, cancelled or used up are refused alike', async () => {
  const messages = new Set<string>()
  const refused = async (code: unknown) => {
    const { status, body } = await accept(code)
    expect({ code, status, error: body.error.code }).toEqual({ code, status: 400, error: 'INVALID_CLAIM' })
    messages.add(body.error.message)
  }
  for (const code of ['', 'AAAAA', 'AAAAAAA', 'AAA-AA', '\u0000AAAAA', 'ÄÖÜ123', 'x'.repeat(10_000)])
    await refused(code)
  const lapsed = await begun()
  pds.clock.advance({ secs: 15 * 60 })
  await refused(lapsed.transferCode)
  const cancelled = await begun()
  expect((await cancel(cancelled.transferId)).status).toBe(200)
  await refused(cancelled.transferCode)
  const done = await accepted()
  await complete(done.transferId, done.deviceToken)
  await refused(done.transferCode)
  const doomed = await begun(await walletSession(pds, alice.did))
  await request(`${pds.url}/xrpc/com.atproto.admin.updateSubjectStatus`, {
    json: {
      subject: { $type: 'com.atproto.admin.defs#repoRef', did: alice.did },
      takedown: { applied: true, ref: 'x' },
    },
    headers: basic('admin', ADMIN_TOKEN),
  })
  await refused(doomed.transferCode)
  expect(messages.size).toBe(1)
})

test('a transfer is not completed while its account is taken down, and is once that is lifted', async () => {
  const carol = await createAccount(pds, 'carol')
  const { transferId, deviceToken } = await accepted(await walletSession(pds, carol.did))
  const setTakedown = (applied: boolean) =>
    request(`${pds.url}/xrpc/com.atproto.admin.updateSubjectStatus`, {
      json: { subject: { $type: 'com.atproto.admin.defs#repoRef', did: carol.did }, takedown: { applied } },
      headers: basic('admin', ADMIN_TOKEN),
    })
  await setTakedown(true)
  expect((await complete(transferId, deviceToken)).status).toBe(401)
  await setTakedown(false)
  expect(await complete(transferId, deviceToken)).toMatchObject({ status: 200, body: { status: 'complete' } })
})

test('what is missing, misspelt or of another kind is told apart', async () => {
  const { transferCode, transferId } = await begun()
  const bodies: [object, number][] = [
    [{}, 422],
    [phone, 422],
    [{ transferCode, platform: 'ios' }, 422],
    [{ transferCode, devicePublicKey: 'zPhone' }, 422],
    [{ transferCode, ...phone, platform: 'amiga' }, 422],
    [{ ...phone, transferCode: 123456 }, 422],
    [{ transferCode, platform: 'ios', devicePublicKey: '' }, 400],
    [{ transferCode, platform: 'ios', devicePublicKey: 'z'.repeat(513) }, 400],
  ]
  for (const [json, status] of bodies)
    expect({ json, status: (await post('accept', json)).status }).toEqual({ json, status })
  expect((await request(`${pds.url}/v1/transfer/accept`, { method: 'POST', body: 'x' })).status).toBe(415)
  for (const json of [{}, { transferId: 1 }]) expect((await post('complete', json, wallet)).status).toBe(422)
  const aliases = { code: transferCode, device_public_key: 'zPhone', platform: 'ios' }
  expect((await post('accept', aliases)).status).toBe(200)
  expect((await post('complete', { transfer_id: transferId }, wallet)).status).toBe(200)
})

test('who has no part in a transfer learns nothing of it', async () => {
  const bob = await createAccount(pds, 'bob')
  const stranger = await walletSession(pds, bob.did)
  const { deviceToken } = await accepted(stranger)
  const pending = await begun()
  for (const token of [stranger, deviceToken, alice.accessJwt, 'A'.repeat(43), ADMIN_TOKEN, 'x'])
    expect(await complete(pending.transferId, token)).toMatchObject(unauthorized)
  expect(await complete(pending.transferId)).toMatchObject({
    status: 401,
    body: { error: { code: 'AUTHENTICATION_REQUIRED' } },
  })
  expect(await complete(pending.transferId, wallet)).toMatchObject(conflict)
  for (const id of ['', 'nothing', crypto.randomUUID()]) expect(await complete(id, wallet)).toMatchObject(invalidClaim)
})

test('a transfer that a device accepted may be completed late, unless another one has begun', async () => {
  const first = await accepted()
  pds.clock.advance({ secs: 3600 })
  const second = await accepted()
  expect(await complete(first.transferId, wallet)).toMatchObject(invalidClaim)
  expect(await complete(first.transferId, first.deviceToken)).toMatchObject(unauthorized)
  expect(await opens(first.deviceId, first.deviceToken)).toBe(401)
  pds.clock.advance({ secs: 3600 })
  expect((await complete(second.transferId, wallet)).status).toBe(200)
})

test('operators see what runs, newest first and page by page, and never a code', async () => {
  const bob = await createAccount(pds, 'bob')
  const carol = await createAccount(pds, 'carol')
  const first = await accepted()
  pds.clock.advance({ secs: 60 })
  const lapsing = await begun(await walletSession(pds, bob.did))
  pds.clock.advance({ secs: 15 * 60 })
  const pending = await begun(await walletSession(pds, carol.did))
  const { transfers } = await listed()
  expect(transfers).toMatchObject([
    {
      id: pending.transferId,
      did: carol.did,
      handle: 'carol.test',
      status: 'pending',
      createdAt: expect.stringMatching(/Z$/),
    },
    {
      id: first.transferId,
      did: alice.did,
      handle: 'alice.test',
      status: 'accepted',
      acceptedAt: expect.any(String),
      acceptedDevicePlatform: 'ios',
    },
  ])
  expect(Object.keys(transfers[0]).toSorted()).toEqual(['createdAt', 'did', 'expiresAt', 'handle', 'id', 'status'])
  const page = await listed('?limit=1')
  expect(page.transfers).toHaveLength(1)
  const next = await listed(`?limit=1&cursor=${encodeURIComponent(page.cursor)}`)
  expect(next.transfers[0].id).toBe(first.transferId)
  for (const query of ['?limit=0', '?limit=201', '?limit=x', '?cursor=x'])
    expect((await request(`${pds.url}/v1/admin/transfers${query}`, { headers: operator })).status).toBe(400)
  const shown = JSON.stringify([transfers, page, next, pds.log])
  for (const { transferCode } of [first, pending, lapsing]) expect(shown).not.toContain(transferCode)
})

test('an operator cancels a transfer: its device is out, sessions stay', async () => {
  const pending = await begun()
  expect(await cancel(pending.transferId)).toMatchObject({
    status: 200,
    body: { id: pending.transferId, status: 'cancelled', revokedDeviceCredential: false },
  })
  const taken = await accepted()
  expect((await cancel(taken.transferId)).body).toMatchObject({ status: 'cancelled', revokedDeviceCredential: true })
  expect((await cancel(taken.transferId)).body).toMatchObject({ status: 'cancelled', revokedDeviceCredential: false })
  expect(await audit()).toHaveLength(2)
  expect(await opens(taken.deviceId, taken.deviceToken)).toBe(401)
  expect(await complete(taken.transferId, taken.deviceToken)).toMatchObject(unauthorized)
  expect(await complete(taken.transferId, wallet)).toMatchObject(invalidClaim)
  expect(await isAlive(wallet)).toBe(true)

  expect(await cancel(crypto.randomUUID())).toMatchObject({ status: 404, body: { error: { code: 'NOT_FOUND' } } })
  pds.clock.advance({ secs: 3600 })
  const lapsed = await begun()
  pds.clock.advance({ secs: 15 * 60 })
  for (let i = 0; i < 2; i++)
    expect(await cancel(lapsed.transferId)).toMatchObject({
      ...conflict,
      body: { error: { message: expect.stringContaining('expired') } },
    })
  const done = await accepted()
  await complete(done.transferId, wallet)
  expect(await cancel(done.transferId)).toMatchObject({
    ...conflict,
    body: { error: { message: expect.stringContaining('complete') } },
  })
  expect(await audit()).toHaveLength(2)
})

test('completion and cancellation at once have one outcome', async () => {
  const { transferId, deviceId, deviceToken } = await accepted()
  const [completed, cancelled] = await Promise.all([complete(transferId, wallet), cancel(transferId)])
  const isComplete = completed.status === 200
  expect(cancelled.status).toBe(isComplete ? 409 : 200)
  expect(await opens(deviceId, deviceToken)).toBe(isComplete ? 200 : 401)
  expect(await isAlive(wallet)).toBe(!isComplete)
})

test('who has every credential of an account revoked, has its devices and its running transfer revoked too', async () => {
  const revoke = () =>
    request(`${pds.url}/v1/admin/accounts/${alice.did}/revoke-credentials`, { json: {}, headers: operator })
  const done = await accepted()
  await complete(done.transferId, done.deviceToken)
  const taken = await accepted(await walletSession(pds, alice.did))
  expect((await revoke()).body).toMatchObject({ transferDeviceTokensRevoked: 2 })
  expect((await revoke()).body).toMatchObject({ transferDeviceTokensRevoked: 0 })
  for (const { deviceId, deviceToken } of [done, taken]) expect(await opens(deviceId, deviceToken)).toBe(401)
  const pending = await begun(await walletSession(pds, alice.did))
  await revoke()
  expect(await accept(pending.transferCode)).toMatchObject(invalidClaim)
})

test('a new password cancels the transfer that somebody with the old one may have begun', async () => {
  const taken = await accepted()
  const changed = await request(`${pds.url}/xrpc/com.atproto.admin.updateAccountPassword`, {
    json: { did: alice.did, password: 'another long password' },
    headers: basic('admin', ADMIN_TOKEN),
  })
  expect(changed.status).toBe(200)
  expect(await complete(taken.transferId, taken.deviceToken)).toMatchObject(unauthorized)
  expect(await isAlive(wallet)).toBe(true)
})

test('the holder sees what runs and which devices there are, and ends either', async () => {
  const did = alice.did as Did
  expect(await runningTransfer(pds.ctx, did)).toBeNull()
  const pending = await begun()
  expect(await runningTransfer(pds.ctx, did)).toMatchObject({ id: pending.transferId, status: 'pending' })
  expect(await cancelTransfer(pds, did)).toBe(true)
  expect(await cancelTransfer(pds, did)).toBe(false)
  expect(await accept(pending.transferCode)).toMatchObject(invalidClaim)
  const lapsed = await begun()
  pds.clock.advance({ secs: 15 * 60 })
  expect(await runningTransfer(pds.ctx, did)).toBeNull()
  expect(lapsed.transferId).toBeDefined()

  const taken = await accepted()
  const bob = await createAccount(pds, 'bob')
  expect(await revokeTransferDevice(pds, bob.did as Did, taken.deviceId)).toBe(false)
  expect(await revokeTransferDevice(pds, did, taken.deviceId)).toBe(true)
  expect(await opens(taken.deviceId, taken.deviceToken)).toBe(401)
  expect(await complete(taken.transferId, wallet)).toMatchObject(invalidClaim)
  expect(await revokeTransferDevice(pds, did, taken.deviceId)).toBe(false)
})

test('what nobody ends, ends by itself', async () => {
  const rows = () => pds.count('transfer')
  await begun()
  pds.clock.advance({ secs: 15 * 60 })
  expect(await pds.runSweep('transfers')).toMatchObject({ expired: 1, deleted: 0 })
  const taken = await accepted()
  pds.clock.advance({ days: 29 })
  expect(await pds.runSweep('transfers')).toMatchObject({ expired: 0 })
  expect(await opens(taken.deviceId, taken.deviceToken)).toBe(200)
  pds.clock.advance({ days: 2 })
  expect(await pds.runSweep('transfers')).toMatchObject({ expired: 1 })
  expect(await opens(taken.deviceId, taken.deviceToken)).toBe(401)
  expect(await complete(taken.transferId, wallet)).toMatchObject(invalidClaim)
  pds.clock.advance({ days: 366 })
  expect(await pds.runSweep('transfers')).toMatchObject({ deleted: 2, devices: 1 })
  expect(await rows()).toBe(0)
})

test('one pass ends all transfers whose codes have expired, however many there are', async () => {
  const past = pds.clock.now() - 1000
  await pds.plant(
    'transfer',
    Array.from({ length: 250 }, (_, i) => ({
      id: `overdue-${i}`,
      did: `did:plc:overdue${i}`,
      code: `OVER-${i}`,
      status: 'pending',
      created_at: past,
      expires_at: past,
    })),
  )
  expect(await pds.runSweep('transfers')).toMatchObject({ expired: 250 })
  for (let i = 0; i < 250; i++) await pds.lose('transfer', { id: `overdue-${i}` })
})

test('one that was begun while the clock was ahead is over once the clock is right', async () => {
  const begunAhead = async () => {
    pds.clock.jump({ days: 365 })
    try {
      return await begun(await walletSession(pds, alice.did))
    } finally {
      pds.clock.jump({ days: -365 })
    }
  }
  expect(await accept((await begunAhead()).transferCode)).toMatchObject(invalidClaim)
  await begunAhead()
  expect((await initiate()).status).toBe(200)
  await begunAhead()
  expect(await pds.runSweep('transfers')).toMatchObject({ expired: 1 })
})

test('transfers end with the account', async () => {
  const taken = await accepted()
  await deleteAccount(pds, alice.did as Did)
  expect(await accept(taken.transferCode)).toMatchObject(invalidClaim)
  expect(await complete(taken.transferId, taken.deviceToken)).toMatchObject(unauthorized)
  expect(await pds.rows('transfer')).toEqual([])
})
