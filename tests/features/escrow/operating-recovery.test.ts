/** What operators see of releases and do about keys, and what the page of an account needs to know. */
import { describe, expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { Secret } from '../../../src/base/secret.ts'
import {
  cancelRelease as cancel,
  deleteShare,
  escrowState,
  startRecovery,
} from '../../../src/features/identity/escrow/escrow.ts'
import type { Exchange } from '../../../src/http/endpoint.ts'
import { rewrap } from '../../../src/platform/secrets/rewrap.ts'
import { Vault } from '../../../src/platform/secrets/vault.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { createAccount } from '../../support/clients/account.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { ADMIN_TOKEN, startPds } from '../../support/servers/pds.ts'
import { runProgram } from '../../support/servers/program.ts'
import {
  newRecoveryCode,
  newShare,
  putShare,
  recoveryCodes,
  release,
  withMasterKey,
} from '../../support/clients/recovery.ts'
import { walletSession } from '../../support/clients/wallet.ts'
import { useWorld } from '../../support/world.ts'

const { pds } = useWorld({ config: { ...withMasterKey, rateLimit: { enabled: false } } })

const list = async (query = '') =>
  (await request(`${pds.url}/v1/admin/recovery-releases${query}`, { headers: bearer(ADMIN_TOKEN) })).body
async function recovering(name: string) {
  const account = await createAccount(pds, name)
  await putShare(pds, await walletSession(pds, account.did), newShare())
  await release(pds, account.did, await newRecoveryCode(pds, account))
  return account
}

describe('operators', () => {
  test('see releases that wait or can be collected, newest first, and no share', async () => {
    expect(await list()).toEqual({ releases: [] })
    const alice = await recovering('alice')
    pds.clock.advance({ days: 2 })
    const bob = await recovering('bob')
    const { releases } = await list()
    const instant = expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/)
    expect(releases).toEqual([
      { did: bob.did, requestedAt: instant, availableAt: instant, available: false },
      { did: alice.did, requestedAt: instant, availableAt: instant, available: true },
    ])
    for (const { requestedAt, availableAt } of releases)
      expect(Date.parse(availableAt) - Date.parse(requestedAt)).toBe(86_400_000)
    const first = await list('?limit=1')
    expect(first.releases).toEqual([releases[0]])
    const second = await list(`?limit=1&cursor=${encodeURIComponent(first.cursor)}`)
    expect(second.releases).toEqual([releases[1]])
    expect((await list(`?limit=1&cursor=${encodeURIComponent(second.cursor)}`)).releases).toEqual([])
    expect(await list('?cursor=x')).toMatchObject({ error: { code: 'InvalidRequest' } })
    await release(pds, alice.did)
    expect((await list()).releases.map(({ did }: { did: string }) => did)).toEqual([bob.did])
  })

  test('see them in the terminal and in metrics', async () => {
    const { code, out } = await runProgram(['account', 'recoveries', '--url', pds.url], {
      SERVICE_ADMIN_TOKEN: ADMIN_TOKEN,
    })
    const [title, ...rows] = out.trimEnd().split('\n')
    expect({ code, title }).toEqual({
      code: 0,
      title: expect.stringMatching(/^ACCOUNT +REQUESTED +AVAILABLE FROM +AVAILABLE$/),
    })
    expect(rows).toEqual([
      expect.stringMatching(/^did:plc:\S+ +\d{4}-\d\d-\d\d \d\d:\d\d +\d{4}-\d\d-\d\d \d\d:\d\d +no$/),
    ])
    expect((await request(`${pds.url}/metrics`)).body).toContain('recovery_releases_open 1')
  })

  test('change the master key, and the share is still the same', async () => {
    const keys = [randomBytes(32), randomBytes(32)] as const
    await using moved = await startPds({ signingKeyMasterKey: new Secret(keys[0]), recovery: { releaseDelaySecs: 0 } })
    const alice = await createAccount(moved, 'alice')
    const share = newShare()
    await putShare(moved, alice.accessJwt, share)
    expect(await rewrap(moved.ctx.db, new Vault(keys[0]), new Vault(keys[1]))).toMatchObject({
      'escrow_share.share_wrapped': 1,
    })
    await moved.restart({ signingKeyMasterKey: new Secret(keys[1]) })
    expect((await release(moved, alice.did, await newRecoveryCode(moved, alice))).body).toEqual({
      status: 'released',
      share,
    })
  })

  test('do not find the share in the database in clear', async () => {
    const carol = await createAccount(pds, 'carol')
    const share = newShare()
    await putShare(pds, carol.accessJwt, share)
    const rows = JSON.stringify(await pds.rows('escrow_share'))
    expect(rows).not.toContain(share)
    expect(rows).not.toContain(share.slice(9, 50))
  })
})

describe('the page of an account', () => {
  test('knows how its share stands, and starts, cancels and deletes', async () => {
    const dave = await createAccount(pds, 'dave')
    const did = dave.did as Did
    const { ctx } = pds
    const state = () => escrowState(ctx, ctx.db, did)
    const exchange = { ctx, request: new Request(pds.url), ip: '127.0.0.1', requestId: 'page' } as Exchange
    expect(await state()).toEqual({ state: 'none' })
    const before = pds.clock.now()
    await putShare(pds, dave.accessJwt, newShare())
    const { since } = (await state()) as { since: number }
    expect(since).toBeGreaterThanOrEqual(before)
    expect(await state()).toEqual({ state: 'held', since })
    for (let codes = 1; codes <= 5; codes++) expect(await startRecovery(exchange, did)).toBe(true)
    expect(await startRecovery(exchange, did)).toBe(false)
    const [first, second] = await recoveryCodes(pds, dave.email)
    const { body } = await release(pds, did, first)
    const until = Date.parse(body.availableAt)
    expect(await state()).toEqual({ state: 'pending', since, until })
    expect(await cancel(exchange, did)).toBe(true)
    expect(await cancel(exchange, did)).toBe(false)
    expect(await state()).toEqual({ state: 'held', since })
    await release(pds, did, second)
    pds.clock.advance({ days: 1 })
    expect(await state()).toMatchObject({ state: 'collectable', since })
    await release(pds, did)
    expect(await state()).toMatchObject({ state: 'collected', since })
    pds.clock.advance({ secs: 3600 })
    expect(await state()).toEqual({ state: 'held', since })
    expect(await deleteShare(exchange, did)).toBe(true)
    expect(await deleteShare(exchange, did)).toBe(false)
    expect(await state()).toEqual({ state: 'none' })
    expect(await startRecovery(exchange, 'did:plc:aliceaaaaaaaaaaaaaaaaaaa' as Did)).toBe(false)
  })
})
