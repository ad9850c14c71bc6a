/** What waits for the world outside, and runs one at a time for each account at all nodes. */
import { expect, test } from 'bun:test'
import { stageBlocks, stageRepo, nextRev } from '../../../src/features/data/repo/repo.ts'
import { sql } from '../../../src/platform/database/database.ts'
import { KeyedLock } from '../../../src/platform/running/keyed-lock.ts'
import { createAccount, holder, xrpc } from '../../support/clients/account.ts'
import type { TestPds } from '../../support/servers/pds.ts'
import { until } from '../../support/until.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { useCluster } from '../../support/cluster-world.ts'
import { thrownBy } from '../../support/thrown.ts'

const {
  cluster,
  nodes: [here, there],
} = useCluster(2, { rateLimit: { enabled: false } })

const lockAt = (pds: TestPds) => new KeyedLock(pds.ctx, 'test')
const rows = () => here.rows('lane', {}, ['name'])

test('turns with one key follow one another at all nodes, those with others do not', async () => {
  let running = 0
  let most = 0
  const work = async () => {
    most = Math.max(most, ++running)
    await here.ctx.db.get(sql`SELECT 1`)
    running--
  }
  const locks = [lockAt(here), lockAt(there)]
  await Promise.all(Array.from({ length: 10 }, (_, i) => locks[i % 2]!.run('one', work)))
  expect(most).toBe(1)

  const { promise, resolve } = Promise.withResolvers<void>()
  const waiting = locks[0]!.run('one', () => promise)
  await locks[1]!.run('other', async () => resolve())
  await waiting
  expect(await rows()).toEqual([])
})

test('the turn of a node that died is over, and so is one that lasts for too long', async () => {
  const left = (holder: string, untilMillis: number) =>
    here.plant('lane', { name: 'test left', holder, turn: holder, until: untilMillis })
  await left('a node that was killed', cluster.clock.now() + 600_000)
  expect(await lockAt(there).run('left', async () => 'done')).toBe('done')

  await left(here.ctx.db.cluster!.node.id, cluster.clock.now() + 60_000)
  let isDone = false
  const waiting = lockAt(there).run('left', async () => void (isDone = true))
  await until(async () => (await rows()).length === 1)
  expect(isDone).toBe(false)
  cluster.clock.advance({ secs: 61 })
  await waiting
  expect(isDone).toBe(true)
})

test('a turn that fails makes room for the next', async () => {
  const failing = lockAt(here).run('failing', async () => {
    throw new Error('no')
  })
  expect(await thrownBy(failing)).toThrow('no')
  expect(await lockAt(there).run('failing', async () => 'done')).toBe('done')
})

test('a turn whose end could not be stored is over once that works again', async () => {
  let bringBack = async () => {}
  await lockAt(here).run('hidden', async () => void (bringBack = await here.hide('lane')))
  await bringBack()
  expect(await lockAt(there).run('hidden', async () => 'done')).toBe('done')
})

test('of handle changes at both nodes, the account ends up with the one that the directory has', async () => {
  const account = await createAccount(here, 'changing')
  const answers = await Promise.all(
    Array.from({ length: 8 }, (_, i) =>
      holder(cluster.nodes[i % 2]!, account).call('com.atproto.identity.updateHandle', {
        json: { handle: `changed${i}.test` },
      }),
    ),
  )
  expect(answers.map(({ status }) => status)).toEqual(Array(8).fill(200))
  const { handle } = (await holder(there, account).call('com.atproto.server.getSession')).body
  expect((await here.ctx.plc.state(account.did as Did))!.alsoKnownAs).toEqual([`at://${handle}`])
  expect(await rows()).toEqual([])
})

test('a changed document that both nodes are asked to refresh is told once', async () => {
  const { did } = await createAccount(here, 'refreshed')
  const events = () => here.count('repo_seq', { did, event_type: 'identity' })
  const refresh = async (pds: TestPds) =>
    (await xrpc(pds, 'com.atproto.identity.refreshIdentity', { json: { identifier: did } })).status
  expect(await refresh(here)).toBe(200)
  const before = await events()
  await here.damage('did_document', { did }, { document: '{}' })
  expect(await Promise.all([here, there, here, there].map(refresh))).toEqual(Array(4).fill(200))
  expect(await events()).toBe(before + 1)
})

test('an import that is under way at one node is not swept by another', async () => {
  const rev = nextRev(here.ctx, null)
  await stageRepo(here.ctx, rev, async (id) => {
    await there.runSweep('abandoned-repos')
    await stageBlocks(here.ctx, id, rev, { nodes: [], records: [] })
    cluster.clock.advance({ secs: 16 * 60 })
    await there.runSweep('abandoned-repos')
    expect(await thrownBy(stageBlocks(here.ctx, id, rev, { nodes: [], records: [] }))).toThrow()
  })
  expect((await xrpc(there, '_health')).status).toBe(200)
})
