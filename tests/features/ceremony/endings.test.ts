/** How ceremonies end by themselves, and what becomes of their names. */
import { describe, expect, test } from 'bun:test'
import { PASSWORD, xrpc } from '../../support/clients/account.ts'
import {
  bear,
  begin,
  claimCode,
  forCeremonies,
  mobile,
  newWallet,
  operate,
  prepared,
  sendDid,
  signingKeyFor,
  type PendingWallet,
} from '../../support/clients/ceremony.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { useWorld } from '../../support/world.ts'

const DAY = 24 * 3600

const { pds, line } = useWorld({ line: true, config: forCeremonies })

const sweep = async () => {
  await pds.runSweep('ceremonies')
  await pds.runSweep('name-claims')
}
const isUnderWay = async ({ handle }: Pick<PendingWallet, 'handle'>): Promise<boolean> =>
  (await operate(pds, '/v1/admin/ceremonies?limit=100')).body.ceremonies.some(
    (one: { handle: string }) => one.handle === handle,
  )
const isFree = async (handle: string): Promise<boolean> =>
  (await xrpc(pds, `com.atproto.temp.checkHandleAvailability?handle=${handle}`)).body.result.$type.endsWith(
    '#resultAvailable',
  )
const deviceCount = () => pds.count('device')

describe('a ceremony that nobody comes back to', () => {
  test('keeps its names for a week after its last session, and then ends', async () => {
    const wallet = await begin(pds, 'forgotten')
    await signingKeyFor(pds, wallet)
    // A session of a day, and a week.
    pds.clock.advance({ secs: 8 * DAY - 60 })
    await sweep()
    expect(await isUnderWay(wallet)).toBe(true)
    expect(await isFree(wallet.handle)).toBe(false)
    pds.clock.advance({ secs: 120 })
    await sweep()
    expect(await isUnderWay(wallet)).toBe(false)
    expect(await isFree(wallet.handle)).toBe(true)
    expect(await deviceCount()).toBe(0)
    expect(await mobile(pds, wallet)).toMatchObject({ status: 409, body: { error: { code: 'CLAIM_CODE_REDEEMED' } } })
    expect(await mobile(pds, { ...wallet, code: await claimCode(pds) })).toMatchObject({ status: 201 })
  })

  test('keeps them from whoever comes back on', async () => {
    const wallet = await begin(pds, 'returning')
    for (let week = 0; week < 3; week++) {
      pds.clock.advance({ secs: 7 * DAY })
      await sweep()
      expect(await mobile(pds, wallet)).toMatchObject({ status: 201 })
    }
  })

  test('gives its names away at that moment, swept or not, and cannot go on without them', async () => {
    const wallet = await begin(pds, 'outpaced')
    pds.clock.advance({ secs: 8 * DAY })
    const successor = { ...newWallet('outpaced'), code: await claimCode(pds) }
    const { body } = await mobile(pds, successor)
    expect(await mobile(pds, wallet)).toMatchObject({ status: 409 })
    const going = { ...successor, token: body.sessionToken as string }
    expect(await sendDid(pds, going, await prepared(pds, going))).toMatchObject({ status: 200 })
    await sweep()
    expect(await isUnderWay(wallet)).toBe(false)
  })

  test('ends after a week if an operator provisioned it and nobody redeemed the code', async () => {
    const { body } = await operate(pds, '/v1/accounts', {
      email: 'unclaimed@example.com',
      handle: 'unclaimed.test',
      tier: 'free',
    })
    pds.clock.advance({ secs: 7 * DAY - 60 })
    await sweep()
    expect(await isFree('unclaimed.test')).toBe(false)
    pds.clock.advance({ secs: 60 })
    await sweep()
    expect(await isFree('unclaimed.test')).toBe(true)
    const device = { claimCode: body.claimCode, devicePublicKey: 'x', platform: 'ios' }
    expect(await request(`${pds.url}/v1/devices`, { json: device })).toMatchObject({
      status: 400,
      body: { error: { code: 'INVALID_CLAIM' } },
    })
  })

  test('is kept for a month if the directory has its identity, although nobody heard of it', async () => {
    const wallet = await begin(pds, 'registered')
    const json = await prepared(pds, wallet)
    line.fate = ({ method }) => (method === 'POST' ? 'answer lost' : 'question lost')
    expect(await sendDid(pds, wallet, json)).toMatchObject({ status: 502 })
    line.fate = () => 'answered'
    pds.clock.advance({ secs: 7.5 * DAY })
    await sweep()
    pds.clock.advance({ secs: 3 * DAY })
    await sweep()
    expect((await operate(pds, '/v1/admin/ceremonies')).body.ceremonies).toContainEqual(
      expect.objectContaining({ handle: wallet.handle, state: 'registered' }),
    )
    expect(await isFree(wallet.handle)).toBe(false)
    // Its wallet comes back, and what was begun is finished.
    const { body } = await mobile(pds, wallet)
    expect(await sendDid(pds, { ...wallet, token: body.sessionToken }, json)).toMatchObject({ status: 200 })
  })

  test('ends after a month even so: its wallet still holds the identity', async () => {
    const wallet = await begin(pds, 'left')
    const json = await prepared(pds, wallet)
    line.fate = ({ method }) => (method === 'POST' ? 'answer lost' : 'question lost')
    await sendDid(pds, wallet, json)
    line.fate = () => 'answered'
    pds.clock.advance({ secs: 7.5 * DAY })
    await sweep()
    pds.clock.advance({ secs: 23.5 * DAY })
    await sweep()
    expect(await isUnderWay(wallet)).toBe(false)
    expect(await isFree(wallet.handle)).toBe(true)
  })

  test('waits while the directory is down and may have its identity', async () => {
    const wallet = await begin(pds, 'unknown')
    const json = await prepared(pds, wallet)
    line.fate = () => 'question lost'
    expect(await sendDid(pds, wallet, json)).toMatchObject({ status: 502 })
    pds.clock.advance({ secs: 9 * DAY })
    expect(await pds.runSweep('ceremonies')).toMatchObject({ failed: expect.any(Number), ended: 0 })
    expect(await isUnderWay(wallet)).toBe(true)
    line.fate = () => 'answered'
    await sweep()
    expect(await isUnderWay(wallet)).toBe(false)
  })
})

test('ceremonies that the directory keeps failing about, however many, do not keep the others from their end', async () => {
  const failing = Array.from({ length: 100 }, (_, i) => ({
    id: `failing-${i}`,
    handle: `failing-${i}.test`,
    email: `failing-${i}@example.com`,
    tier: 'free',
    invite_code: `failing-${i}`,
    created_at: pds.clock.now() - 2 * DAY * 1000,
    did: `did:plc:${`failing${Array.from(String(i), (digit) => 'abcdefghij'[Number(digit)]).join('')}`.padEnd(24, 'z')}`,
  }))
  await pds.plant('ceremony', failing)
  const wallet = await begin(pds, 'behind')
  pds.clock.advance({ secs: 9 * DAY })
  line.fate = ({ path }) => (path.includes('did:plc:failing') ? 500 : 'answered')
  expect(await pds.runSweep('ceremonies')).toMatchObject({ ended: 0, failed: 200 })
  expect(await pds.runSweep('ceremonies')).toMatchObject({ ended: 1 })
  expect(await isUnderWay(wallet)).toBe(false)
  line.fate = () => 'answered'
  await pds.lose('ceremony')
})

describe('the handle of a new account', () => {
  test('is kept for it for a day, from others and from other ceremonies, and is free afterwards', async () => {
    const owner = await bear(pds, 'kept')
    const others = async () => [
      (await mobile(pds, { ...newWallet('otto'), handle: owner.handle, code: await claimCode(pds) })).status,
      (
        await xrpc(pds, 'com.atproto.server.createAccount', {
          json: { handle: owner.handle, email: 'o@example.com', password: PASSWORD },
        })
      ).status,
    ]
    pds.clock.advance({ secs: DAY - 60 })
    expect(await others()).toEqual([409, 400])
    pds.clock.advance({ secs: 60 })
    expect(await isFree(owner.handle)).toBe(true)
    expect(await others()).toEqual([201, 400])
  })

  test('belongs to it at once when it takes it, by either way', async () => {
    const one = await bear(pds, 'takes-one')
    expect(
      await request(`${pds.url}/v1/handles`, {
        headers: bearer(one.session),
        json: { accountId: one.did, handle: one.handle },
      }),
    ).toMatchObject({ status: 200 })
    const two = await bear(pds, 'takes-two')
    const session = await xrpc(pds, 'com.atproto.server.createSession', {
      json: { identifier: two.did, password: PASSWORD },
    })
    expect(
      await xrpc(pds, 'com.atproto.identity.updateHandle', {
        headers: bearer(session.body.accessJwt),
        json: { handle: two.handle },
      }),
    ).toMatchObject({ status: 200 })
    pds.clock.advance({ secs: 2 * DAY })
    await sweep()
    for (const { handle, did } of [one, two])
      expect(await xrpc(pds, `com.atproto.identity.resolveHandle?handle=${handle}`)).toMatchObject({ body: { did } })
  })

  test('is free when the account is deleted', async () => {
    const owner = await bear(pds, 'short-lived')
    await operate(pds, '/xrpc/com.atproto.admin.deleteAccount', { did: owner.did })
    expect(await isFree(owner.handle)).toBe(true)
    expect(await pds.rows('wallet_session', { did: owner.did }, ['did'])).toEqual([])
  })
})
