/** What the owner of an account does with the share in escrow, against the published vectors. */
import { beforeEach, describe, expect, test } from 'bun:test'
import { Secret } from '../../../src/base/secret.ts'
import { createAccount, logIn, type TestAccount } from '../../support/clients/account.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { OAuthClient } from '../../support/clients/oauth-client.ts'
import {
  cancelRelease,
  dropShare,
  escrowEvents,
  initiate,
  newRecoveryCode,
  newShare,
  putShare,
  recoveryCodes,
  release,
} from '../../support/clients/recovery.ts'
import { walletSession } from '../../support/clients/wallet.ts'
import atRest from '../../vectors/contract/escrow-at-rest-v1.json' with { type: 'json' }
import vectors from '../../vectors/contract/shamir-share-v2.json' with { type: 'json' }
import { useWorld } from '../../support/world.ts'
import { setUp } from '../../support/set-up.ts'

const masterKey = { signingKeyMasterKey: new Secret(Buffer.from(atRest.masterKeyHex, 'hex')) }

let people = 0
let alice: TestAccount
let wallet: string
const { pds } = useWorld({ config: { ...masterKey, recovery: { releaseDelaySecs: 0 }, rateLimit: { enabled: false } } })
beforeEach(async () => {
  alice = await createAccount(pds, `alice${++people}`)
  wallet = await walletSession(pds, alice.did)
})

const collected = async () => (await release(pds, alice.did, await newRecoveryCode(pds, alice))).body.share
const put = (init: Parameters<typeof request>[1]) =>
  request(`${pds.url}/v1/recovery/escrow-share`, { method: 'PUT', ...init })
const invalid = (status: number) => ({ status, body: { error: { code: 'InvalidRequest' } } })

test('describeServer offers escrow', async () => {
  const { body } = await request(`${pds.url}/xrpc/com.atproto.server.describeServer`)
  expect(body.custos.capabilities).toContain('escrow')
})

describe('a share', () => {
  test.each([
    ...vectors.sets.flatMap(({ label, shares }) => [
      { name: `set ${label}`, input: shares[1]!.base32, base32: shares[1]!.base32 },
    ]),
    ...vectors.decodeTolerant.map(({ name, input }) => ({ name, input, base32: vectors.sets[0]!.shares[1]!.base32 })),
  ])('is taken, and comes back in its one spelling: $name', async ({ input, base32 }) => {
    expect(await putShare(pds, wallet, input)).toMatchObject({ status: 200, body: { status: 'deposited' } })
    expect(await collected()).toBe(base32)
  })

  test.each([...vectors.reject, ...vectors.wrongIndexForEscrow])('is refused: $name', async ({ base32 }) => {
    expect(await putShare(pds, wallet, base32)).toMatchObject(invalid(400))
    expect(await escrowEvents(pds, alice.did)).toEqual([])
  })

  test('is as the published one at rest', async () => {
    await putShare(pds, wallet, newShare())
    await pds.damage('escrow_share', { did: alice.did }, { share_wrapped: atRest.stored })
    expect(await collected()).toBe(atRest.releasedShareBase32)
  })

  test('is not replaced or deleted without its holder being told', async () => {
    for (let times = 0; times < 2; times++) await putShare(pds, wallet, newShare())
    for (let times = 0; times < 2; times++) await dropShare(pds, wallet)
    await pds.runSteps()
    const told = pds.mails.filter(({ to }) => to === alice.email).map(({ subject }) => subject.split(' (')[0])
    // Of two nodes, each may send one.
    expect(told.toSorted()).toEqual(['Your recovery share was deleted', 'Your recovery share was replaced'])
  })

  test('is replaced by the next, and deleted', async () => {
    const [first, second] = [newShare(2, 1), newShare(2, 0xffffffff)]
    expect((await putShare(pds, alice.accessJwt, first)).body).toEqual({ status: 'deposited' })
    expect((await putShare(pds, wallet, second)).body).toEqual({ status: 'rotated' })
    expect(await collected()).toBe(second)
    expect((await dropShare(pds, wallet)).body).toEqual({ status: 'deleted' })
    expect((await dropShare(pds, alice.accessJwt)).body).toEqual({ status: 'deleted' })
    expect((await putShare(pds, wallet, first)).body).toEqual({ status: 'deposited' })
    const details = await pds.rows('escrow_audit', { did: alice.did }, ['event', 'detail'])
    expect(details).toEqual([
      { event: 'deposited', detail: '{"set_id":1,"version":2}' },
      { event: 'rotated', detail: '{"set_id":4294967295,"version":2}' },
      { event: 'release_requested', detail: '{"delay_secs":0}' },
      { event: 'released', detail: null },
      { event: 'deleted', detail: null },
      { event: 'deposited', detail: '{"set_id":1,"version":2}' },
    ])
  })

  test('of many put at once is one of them, and the first alone was deposited', async () => {
    const shares = Array.from({ length: 6 }, (_, i) => newShare(2, i))
    const answers = await Promise.all(shares.map((share) => putShare(pds, wallet, share)))
    expect(answers.map(({ body }) => body.status).toSorted()).toEqual(['deposited', ...Array(5).fill('rotated')])
    expect(shares).toContain(await collected())
  })

  test('is read after the caller is known, and as JSON of the right form', async () => {
    for (const body of ['{', '[]', '{}', '{"share":1}', '{"share":null}', JSON.stringify({ share: newShare() })])
      expect(await put({ body, headers: { 'content-type': 'application/json' } })).toMatchObject({
        status: 401,
        body: { error: { code: 'AUTHENTICATION_REQUIRED' } },
      })
    const headers = { ...bearer(wallet), 'content-type': 'application/json' }
    expect(await put({ body: '{', headers })).toMatchObject(invalid(400))
    for (const body of ['', '{}', '[]', '{"share":1}', '{"share":null}', '{"Share":"x"}'])
      expect([body, await put({ body, headers })]).toMatchObject([body, invalid(422)])
    expect(
      await put({ body: JSON.stringify({ share: newShare() }), headers: { ...headers, 'content-type': 'text/plain' } }),
    ).toMatchObject(invalid(415))
    expect(await put({ json: { share: newShare(), more: [1] }, headers })).toMatchObject({ status: 200 })
  })

  test('is nothing for app passwords and apps', async () => {
    const made = await alice.call('com.atproto.server.createAppPassword', { json: { name: 'phone', privileged: true } })
    const phone = await logIn(pds, alice, made.body.password)
    for (const attempt of [
      putShare(pds, phone.accessJwt, newShare()),
      dropShare(pds, phone.accessJwt),
      cancelRelease(pds, phone.accessJwt),
    ])
      expect(await attempt).toMatchObject({ status: 401, body: { error: { code: 'INVALID_TOKEN' } } })
    const app = new OAuthClient(pds)
    const { access_token: granted } = await app.signIn({ identifier: alice.handle, password: alice.password })
    expect(await app.call(granted, '/v1/recovery/release/cancel', {}, { json: {} })).toMatchObject({
      status: 403,
      body: { error: { code: 'InsufficientScope' } },
    })
    expect(await escrowEvents(pds, alice.did)).toEqual([])
  })

  test('is one of the owner, whatever the request says', async () => {
    const bob = await createAccount(pds, `bob${people}`)
    const share = newShare()
    await putShare(pds, bob.accessJwt, share)
    await put({ json: { share: newShare(), did: bob.did, identifier: bob.did }, headers: bearer(wallet) })
    await request(`${pds.url}/v1/recovery/escrow-share?did=${bob.did}`, { method: 'DELETE', headers: bearer(wallet) })
    expect((await release(pds, bob.did, await newRecoveryCode(pds, bob))).body.share).toBe(share)
  })

  test('stays in escrow while the account is deactivated', async () => {
    await alice.call('com.atproto.server.deactivateAccount', { json: {} })
    const share = newShare()
    expect((await putShare(pds, wallet, share)).body).toEqual({ status: 'deposited' })
    expect(await collected()).toBe(share)
    expect((await dropShare(pds, wallet)).body).toEqual({ status: 'deleted' })
  })
})

describe('without a configured master key', () => {
  const { pds: bare } = useWorld({
    config: { rateLimit: { enabled: false } },
    options: { alone: 'it has no master key' },
  })
  const bob = setUp(() => createAccount(bare, 'bob'))
  const unavailable = { status: 503, body: { error: { code: 'SERVICE_UNAVAILABLE' } } }

  test('escrow is not offered, and takes no share that is one', async () => {
    const { body } = await request(`${bare.url}/xrpc/com.atproto.server.describeServer`)
    expect(body.custos.capabilities).not.toContain('escrow')
    expect(await putShare(bare, bob.accessJwt, newShare())).toMatchObject(unavailable)
    expect(await putShare(bare, bob.accessJwt, newShare(1))).toMatchObject(invalid(400))
    expect(await putShare(bare, 'nobody', newShare())).toMatchObject({ status: 401 })
  })

  test('nothing is released, whatever is sent', async () => {
    expect(await release(bare, bob.did)).toMatchObject(unavailable)
    expect(await request(`${bare.url}/v1/recovery/release`, { method: 'POST', body: '{' })).toMatchObject(unavailable)
    expect(await initiate(bare, bob.did, 'A'.repeat(43))).toMatchObject(unavailable)
  })

  test('initiate answers as ever, and mails no code that would open nothing', async () => {
    expect(await initiate(bare, bob.did)).toMatchObject({ status: 200, body: '' })
    expect(await recoveryCodes(bare, bob.email)).toEqual([])
  })

  test('the owner still cancels and deletes what an earlier configuration took', async () => {
    expect((await dropShare(bare, bob.accessJwt)).body).toEqual({ status: 'deleted' })
    expect((await cancelRelease(bare, bob.accessJwt)).body).toEqual({ status: 'cancelled' })
  })
})
