/** A node whose clock is wrong by hours: it goes by the time of the others, and harms nobody. */
import { describe, expect, test } from 'bun:test'
import { alerts } from '../../../src/features/operations/alerts/alert-table.ts'
import { PROOF_MEMORY_SECS } from '../../../src/protocol/dpop.ts'
import { tidMicros } from '../../../src/protocol/tid.ts'
import type { Tid } from '../../../src/protocol/identifiers.ts'
import { createAccount, holder, PASSWORD, xrpc } from '../../support/clients/account.ts'
import { OAuthClient } from '../../support/clients/oauth-client.ts'
import { Uploader } from '../../support/clients/uploader.ts'
import type { TestPds } from '../../support/servers/server.ts'
import { useCluster } from '../../support/cluster-world.ts'
import { startCluster } from '../../support/servers/cluster.ts'
import { setUp } from '../../support/set-up.ts'
import { until } from '../../support/until.ts'

const HOUR_SECS = 3600
const AHEAD_SECS = 6 * HOUR_SECS
/** Nodes agree if they differ by less. */
const AGREEING_SECS = 120

const {
  cluster,
  nodes: [right],
} = useCluster(2, { rateLimit: { enabled: false } })
const ahead = setUp(() => cluster.add({}, { aheadSecs: AHEAD_SECS }))
const behind = setUp(() => cluster.add({}, { aheadSecs: -AHEAD_SECS }))

/** By how much the time that a node goes by is ahead. */
const secsAhead = ({ ctx }: typeof right) => (ctx.clock.now() - cluster.clock.now()) / 1000

test('its sweeps delete nothing before its time', async () => {
  const alice = await Uploader.join(right, 'alice')
  const { ref } = await alice.upload('a picture')
  for (let pass = 0; pass < 3; pass++) await ahead.runSweep('blob-gc')
  expect(await right.count('blob', { cid: ref.$link })).toBe(1)
})

test('guesses at it are guesses at the others', async () => {
  const { handle } = await createAccount(right, 'bob')
  const signIn = (node: typeof right, password: string) =>
    xrpc(node, 'com.atproto.server.createSession', { json: { identifier: handle, password } })
  for (const node of [right, ahead, right, behind, ahead]) expect((await signIn(node, 'wrong')).status).toBe(401)
  for (const node of [right, ahead, behind]) expect((await signIn(node, PASSWORD)).status).toBe(429)
})

test('it signs no commit of the future, and its tokens last as long as those of others', async () => {
  const account = await createAccount(right, 'carol')
  const write = (node: typeof right) =>
    holder(node, account).call('com.atproto.repo.createRecord', {
      json: { repo: account.did, collection: 'com.example.note', record: {} },
    })
  for (const node of [ahead, behind, right]) {
    const { status, body } = await write(node)
    expect(status).toBe(200)
    const aheadSecs = tidMicros(body.commit.rev as Tid) / 1_000_000 - cluster.clock.now() / 1000
    expect(Math.abs(aheadSecs)).toBeLessThan(AGREEING_SECS)
  }
})

test('its operators are told', async () => {
  const clock = alerts.find(({ name }) => name === 'clock-off')!
  expect(await clock.look(ahead.ctx)).toEqual([
    { text: '6 hours ahead of most clocks of the cluster: this node uses their time' },
  ])
  expect(await clock.look(behind.ctx)).toEqual([
    { text: '6 hours behind most clocks of the cluster: this node uses their time' },
  ])
})

test('the others go by their own clock', () => {
  expect(secsAhead(right)).toBeLessThan(AGREEING_SECS)
})

test('once somebody has set its clock, it goes by that at once', async () => {
  behind.clock.jump({ secs: AHEAD_SECS })
  expect(Math.abs(secsAhead(behind))).toBeLessThan(AGREEING_SECS)
})

test('where the clock of the database is set back, no node goes by what others noted before', async () => {
  await using shifted = await startCluster(0, {}, { databasePace: 1 / 4 })
  const node = await shifted.add({}, { aheadSecs: AHEAD_SECS })
  const [own] = await node.rows('node', {}, ['id', 'beats'])
  // To the database, the nodes are ahead from now on; those that have not noted it yet were heard of in the future.
  const heartbeat_at = Date.now() + AHEAD_SECS * 1000
  const row = { name: 'other', version: '1', started_at: 0, heartbeat_at, clock_ahead: 0 }
  await node.plant('node', [
    { ...row, id: 'one' },
    { ...row, id: 'another' },
  ])
  await until(async () => (await node.rows('node', { id: own!.id }))[0]!.beats > own!.beats + 1)
  expect(Math.abs(secsAhead(node) - AHEAD_SECS)).toBeLessThan(AGREEING_SECS)
})

test('where the clock of the database is the wrong one, the nodes go by their own', async () => {
  await using shifted = await startCluster(0)
  const nodes = [await shifted.add({}, { aheadSecs: AHEAD_SECS }), await shifted.add({}, { aheadSecs: AHEAD_SECS })]
  for (const node of nodes) expect(Math.abs(secsAhead(node) - AHEAD_SECS)).toBeLessThan(AGREEING_SECS)
})

test('a nonce of one node is one of all, however their clocks differ, and whenever they were set', async () => {
  await using differing = await startCluster(0, { rateLimit: { enabled: false } })
  const first = await differing.add({}, { aheadSecs: AHEAD_SECS })
  // Alone with the database it goes by its own clock, until somebody sets that.
  const early = new OAuthClient(first)
  expect((await early.push()).status).toBe(201)
  first.clock.jump({ secs: -AHEAD_SECS })
  const fast = await differing.add({}, { aheadSecs: AGREEING_SECS - 10 })
  const slow = await differing.add({}, { aheadSecs: 10 - AGREEING_SECS })
  const { publicUrl } = early
  for (const [one, other] of [
    [first, fast],
    [fast, first],
    [first, slow],
    [slow, first],
    [fast, slow],
    [slow, fast],
  ] as const) {
    const issued = await new OAuthClient({ ...one, publicUrl }).postOnce('/oauth/par', {}, { rawProof: null })
    const app = new OAuthClient({ url: other.url, clock: first.clock, publicUrl })
    app.nonce = issued.headers.get('dpop-nonce')!
    await until(async () => Math.abs(one.ctx.clock.now() - first.clock.now()) < AHEAD_SECS * 500)
    expect((await app.postOnce('/oauth/par', app.authentication())).body.error).not.toBe('use_dpop_nonce')
  }
})

test('a proof that the nodes have forgotten is accepted by none, however their clocks differ', async () => {
  await using differing = await startCluster(1, { rateLimit: { enabled: false } })
  const [right] = differing.nodes as [TestPds]
  const fast = await differing.add({}, { aheadSecs: AGREEING_SECS - 10 })
  const app = new OAuthClient({ url: fast.url, clock: right.clock, publicUrl: right.url })
  // The clock of the app is ahead, too.
  const misstep = { proof: { iat: app.nowSecs + 60 } }
  expect((await app.push({}, misstep)).status).toBe(201)
  differing.clock.advance({ secs: PROOF_MEMORY_SECS })
  expect(await right.count('used_proof')).toBe(1)
  await right.lose('used_proof')
  const replay = new OAuthClient(right)
  const answer = await replay.postOnce('/oauth/par', replay.authentication(), { rawProof: app.lastProof })
  expect(answer.body.error).toBe('use_dpop_nonce')
})

describe('a node whose clock is a minute ahead', () => {
  const LIMIT = 10
  const { cluster: limited, nodes } = useCluster(1, { rateLimit: { resetPasswordPer5min: LIMIT } })
  const fast = setUp(() => limited.add({}, { aheadSecs: 60 }))
  const pass = (secs: number) => {
    for (const { clock } of [nodes[0], fast]) clock.advance({ secs })
  }
  /** The statuses of requests to both nodes in turn. */
  const inTurn = async (count: number, send: (node: TestPds) => Promise<{ status: number }>) => {
    const statuses: number[] = []
    for (let i = 0; i < count; i++) statuses.push((await send(i % 2 === 0 ? nodes[0] : fast)).status)
    return statuses.toSorted()
  }

  test('lets no more guesses of codes through than the others, also while its windows end before theirs', async () => {
    const guess = (node: TestPds) =>
      xrpc(node, 'com.atproto.server.resetPassword', { json: { token: 'AAAAA-BBBBB', password: 'a new password' } })
    expect((await guess(nodes[0])).status).toBe(400)
    pass(270)
    const statuses = await inTurn(3 * LIMIT, guess)
    expect(statuses.filter((status) => status === 400)).toHaveLength(LIMIT - 1)
  })

  test('counts the wrong passwords that the others have seen', async () => {
    const { handle } = await createAccount(nodes[0], 'dora')
    const signIn = (node: TestPds) =>
      xrpc(node, 'com.atproto.server.createSession', { json: { identifier: handle, password: 'wrong' } })
    expect(await inTurn(8, signIn)).toEqual([401, 401, 401, 401, 401, 429, 429, 429])
  })
})
