/** Somebody sets the clock, ahead and back, while the server runs and while it does not. */
import { beforeAll, describe, expect, test } from 'bun:test'
import type { RepoEvent } from '../../../src/features/data/firehose/firehose.ts'
import { resolveDid } from '../../../src/features/identity/identity/identity.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { createAccount, PASSWORD } from '../../support/clients/account.ts'
import { sequence } from '../../support/clients/events.ts'
import { basic, request } from '../../support/clients/http.ts'
import { OAuthClient } from '../../support/clients/oauth-client.ts'
import { ADMIN_TOKEN, startPds, type TestPds } from '../../support/servers/pds.ts'
import { useWorld } from '../../support/world.ts'

const YEAR = { days: 365 }
const BACK = { days: -365 }
const SKIPPED = { skipped: 1 }

const identity: RepoEvent = { type: 'identity', did: 'did:plc:aliceaaaaaaaaaaaaaaaaaaa' as Did }
const kept = async (pds: TestPds) => (await pds.rows('repo_seq', {}, ['seq'])).map(({ seq }) => seq)
const logIn = ({ url }: TestPds, identifier: string, password = 'no') =>
  request(`${url}/xrpc/com.atproto.server.createSession`, { json: { identifier, password } })

describe('windows in memory are as long as they are', () => {
  const { pds } = useWorld({
    config: { rateLimit: { createSessionPer5min: 10 } },
    options: { alone: 'the windows are those in the memory of a node' },
  })
  beforeAll(async () => {
    await createAccount(pds, 'alice')
  })

  test('a limited address is admitted again after its five minutes, and not before', async () => {
    pds.clock.jump(YEAR)
    for (let i = 0; i < 10; i++) expect((await logIn(pds, `${i}.test`)).status).toBe(401)
    const refused = async () => {
      const { status, headers } = await logIn(pds, 'x.test')
      const resetSecs = Number(headers.get('ratelimit-reset')) - pds.clock.now() / 1000
      expect([resetSecs > 0, resetSecs < 302, Number(headers.get('retry-after')) <= 300]).toEqual([true, true, true])
      return status
    }
    expect(await refused()).toBe(429)
    pds.clock.jump(BACK)
    expect(await refused()).toBe(429)
    pds.clock.jump(YEAR)
    expect(await refused()).toBe(429)
    pds.clock.jump(BACK)
    pds.clock.advance({ secs: 301 })
    expect((await logIn(pds, 'x.test')).status).toBe(401)
  })

  test('so is the minute of an identifier at which was guessed', async () => {
    pds.clock.advance({ secs: 301 })
    pds.clock.jump(YEAR)
    for (let i = 0; i < 5; i++) expect((await logIn(pds, 'alice.test')).status).toBe(401)
    expect((await logIn(pds, 'alice.test', PASSWORD)).status).toBe(429)
    pds.clock.jump(BACK)
    pds.clock.advance({ secs: 61 })
    expect((await logIn(pds, 'alice.test', PASSWORD)).status).toBe(200)
  })

  test('a proof that was used is of no use again when the clock is back where it was', async () => {
    pds.clock.advance({ secs: 301 })
    const app = new OAuthClient(pds)
    const { access_token } = await app.signIn({ identifier: 'alice.test', password: PASSWORD })
    const call = () => app.call(access_token, 'com.atproto.server.getSession')
    expect((await call()).status).toBe(200)
    const used = app.lastProof
    for (let i = 0; i < 2; i++) {
      pds.clock.advance({ secs: 240 })
      expect((await call()).status).toBe(200)
    }
    pds.clock.jump({ secs: -480 })
    const again = await app.callOnce(access_token, 'com.atproto.server.getSession', { rawProof: used })
    expect(again.status).toBe(401)
    // The test does not move PostgreSQL's clock, by which the proof is remembered there.
    expect(['use_dpop_nonce', 'invalid_dpop_proof']).toContain(again.body.error)
    expect((await call()).status).toBe(200)
    pds.clock.jump({ secs: 480 })
  })

  test('a document that was fetched in the future is not fresh for a year', async () => {
    const did = (await createAccount(pds, 'bob')).did as Did
    pds.clock.jump(YEAR)
    expect(await resolveDid(pds.ctx, did)).toMatchObject({ ok: true })
    pds.clock.jump(BACK)
    await pds.lose('plc_operation', { did })
    expect(await resolveDid(pds.ctx, did)).toEqual({ ok: false, fault: 'not-found' })
  })

  test('the uptime is the time that has passed', async () => {
    await using fresh = await startPds()
    fresh.clock.advance({ secs: 90 })
    fresh.clock.jump(BACK)
    const { body } = await request(`${fresh.url}/v1/admin/health`, { headers: basic('admin', ADMIN_TOKEN) })
    // The request takes time too.
    expect(body.uptimeSeconds).toBeWithin(90, 120)
  })
})

describe('what deletes by age skips a pass', () => {
  test('after a jump ahead, and one back: the log is whole, and passes go on', async () => {
    await using pds = await startPds({ firehose: { logRetentionSecs: 3600 } })
    const seqs = await sequence(pds, identity, identity, identity)
    expect(await pds.runSweep('firehose-gc')).toEqual({ swept: 0, errors: 0 })
    pds.clock.jump(YEAR)
    expect(await pds.runSweep('firehose-gc')).toEqual(SKIPPED)
    pds.clock.jump(BACK)
    expect(await pds.runSweep('firehose-gc')).toEqual(SKIPPED)
    expect(await pds.runSweep('firehose-gc')).toEqual({ swept: 0, errors: 0 })
    expect(await kept(pds)).toEqual(seqs)
    pds.clock.advance({ secs: 3601 })
    expect(await pds.runSweep('firehose-gc')).toEqual({ swept: 2, errors: 0 })
  })

  test('a clock that stays where it was set is believed at the second pass', async () => {
    await using pds = await startPds({ firehose: { logRetentionSecs: 3600 } })
    await sequence(pds, identity, identity)
    pds.clock.jump(YEAR)
    expect(await pds.runSweep('firehose-gc')).toEqual(SKIPPED)
    pds.clock.advance({ secs: 3600 })
    expect(await pds.runSweep('firehose-gc')).toEqual({ swept: 1, errors: 0 })
  })

  test('of a machine that sleeps every night, every other pass is made; of one whose clock is wrong again, none', async () => {
    await using pds = await startPds()
    const nextDay = (asleep: Parameters<typeof pds.clock.jump>[0]) => {
      pds.clock.advance({ secs: 16 * 3600 })
      pds.clock.jump(asleep)
      return pds.runSweep('steps')
    }
    const night = { secs: 8 * 3600 }
    const made = { deleted: 0 }
    for (const expected of [SKIPPED, made, SKIPPED, made]) expect(await nextDay(night)).toEqual(expected)
    for (const span of [YEAR, YEAR, BACK]) expect(await nextDay(span)).toEqual(SKIPPED)
  })

  test('whichever pass is the first to notice, every other one is skipped too, once', async () => {
    await using pds = await startPds()
    const destructive = [
      'firehose-gc',
      'blob-gc',
      'blob-scrub',
      'blob-scrub-full',
      'account-reaper',
      'expired-sessions',
      'oauth-expiry',
      'proof-nonces',
      'recovery-codes',
      'reserved-keys',
      'steps',
      'transfers',
      'moves',
      'mailed-codes',
      'former-addresses',
      'account-events',
      'admin-nonce-sweep',
      'agent-claim-sweep',
      'name-claims',
      'ceremonies',
      'abandoned-repos',
      'case-retention',
      'spaces',
      'blob-quarantine',
      'signup-places',
    ]
    // Their passes at the start may be under way, and would be joined.
    for (const name of ['name-claims', 'abandoned-repos']) await pds.runSweep(name)
    pds.clock.jump({ secs: 61 })
    for (const name of destructive) expect([name, await pds.runSweep(name)]).toEqual([name, SKIPPED])
    for (const name of destructive) expect((await pds.runSweep(name))['skipped']).toBeUndefined()
    expect(
      pds.ctx.sweeps.sweeps
        .filter((sweep) => sweep.destructive)
        .map(({ name }) => name)
        .toSorted(),
    ).toEqual(destructive.toSorted())
  })

  test('a skipped pass is none that was completed', async () => {
    await using pds = await startPds()
    await pds.runSweep('blob-gc')
    const health = async () =>
      (await request(`${pds.url}/v1/admin/health`, { headers: basic('admin', ADMIN_TOKEN) })).body.sweeps.blobGc
    const before = await health()
    pds.clock.jump(YEAR)
    await pds.runSweep('blob-gc')
    expect(await health()).toEqual(before)
  })

  test('time that passes, and a clock that is put right by little, skip nothing', async () => {
    await using pds = await startPds()
    for (const secs of [59, -59]) {
      pds.clock.advance({ days: 400 })
      pds.clock.jump({ secs })
      expect(await pds.runSweep('firehose-gc')).toEqual({ swept: 0, errors: 0 })
    }
  })

  test.each([
    ['ahead by a year', YEAR, true],
    ['behind by an hour', { secs: -3600 }, true],
    ['later by what a restart takes', { secs: 3600 }, false],
  ])('a server that starts with the clock %s', async (_, span, isSkipped) => {
    await using pds = await startPds({ firehose: { logRetentionSecs: 7200 } })
    const seqs = await sequence(pds, identity, identity)
    await pds.runSweep('firehose-gc')
    await pds.stop()
    pds.clock.jump(span)
    await pds.restart()
    const first = await pds.runSweep('firehose-gc')
    expect(first).toEqual(isSkipped ? SKIPPED : { swept: 0, errors: 0 })
    expect(await kept(pds)).toEqual(seqs)
    expect((await pds.runSweep('firehose-gc'))['skipped']).toBeUndefined()
  })

  test('a database of an older version is compared with its newest event', async () => {
    await using pds = await startPds()
    await sequence(pds, identity)
    await pds.hide('clock_seen')
    await pds.lose('schema_migration', { name: 'clock-seen' })
    await pds.stop()
    pds.clock.jump(YEAR)
    await pds.restart()
    expect(await pds.runSweep('firehose-gc')).toEqual(SKIPPED)
  })
})
