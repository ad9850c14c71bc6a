/**
 * Durable steps and claims on names on several servers: each is performed once, and what a dead server held goes on.
 */
import { expect, test } from 'bun:test'
import { Metrics } from '../../../src/platform/running/metrics.ts'
import { StepRunner, type StepKind } from '../../../src/platform/running/steps.ts'
import type { Clock } from '../../../src/platform/running/clock.ts'
import type { TestPds } from '../../support/servers/pds.ts'
import { until } from '../../support/until.ts'
import { useCluster } from '../../support/cluster-world.ts'

const {
  cluster,
  nodes: [here, there],
} = useCluster(2, { rateLimit: { enabled: false } })

const kindOf = (
  name: string,
  take: StepKind<string>['take'],
  changes: Partial<StepKind<string>> = {},
): StepKind<string> => ({
  name,
  concurrency: 2,
  maxSteps: 100,
  maxTries: null,
  firstWaitSecs: 1000,
  maxWaitSecs: 1000,
  take,
  ...changes,
})
const runnerAt = (pds: TestPds, kind: StepKind<string>) =>
  new StepRunner({ ...pds.ctx, metrics: new Metrics() }, [kind])
const add = (pds: TestPds, runner: StepRunner, kind: StepKind<string>, key: string) =>
  pds.ctx.db.transaction((tx) => runner.add(tx, kind, { key, payload: key }))
const rowsOf = (kind: string) => here.rows('step', { kind }, ['taken_by', 'tries'])
const theWorld = () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  return { waits: promise, goesOn: resolve }
}

test('a step that is added while its own node is busy is performed by another, and whoever waits for it is told', async () => {
  const world = theWorld()
  const taken: string[] = []
  const kind = kindOf(
    'shared',
    async (ctx, { key }) => {
      taken.push(`${ctx.db.cluster!.node.id} ${key}`)
      if (key === 'slow') await world.waits
      if (key === 'bad') throw new Error('no')
    },
    { concurrency: 1 },
  )
  const [one, other] = [runnerAt(here, kind), runnerAt(there, kind)]
  await one.start()
  await add(here, one, kind, 'slow')
  await until(() => taken.length === 1)
  await other.start()
  await add(here, one, kind, 'good')
  expect(await one.nextTry(kind, 'good', 15_000)).toBe(true)
  await add(here, one, kind, 'bad')
  expect(await one.nextTry(kind, 'bad', 60_000)).toBe(false)
  expect(await one.hasten(kind.name, 'bad', 60_000)).toBe(false)
  const [first, second] = cluster.nodes.map(({ ctx }) => ctx.db.cluster!.node.id)
  expect(taken).toEqual([`${first} slow`, `${second} good`, `${second} bad`, `${second} bad`])
  world.goesOn()
  await Promise.all([one.stop(), other.stop()])
})

test('a step that is taken by a node whose clock is ahead is left to it', async () => {
  const world = theWorld()
  const taken: string[] = []
  const kind = kindOf('early', async (ctx) => {
    taken.push(ctx.db.cluster!.node.id)
    await world.waits
  })
  // A node of the version before, which goes by its own clock.
  const clock: Clock = { ...here.ctx.clock, now: () => here.ctx.clock.now() + 90_000 }
  const early = new StepRunner({ ...here.ctx, clock, metrics: new Metrics() }, [kind])
  const other = runnerAt(there, kind)
  await early.start()
  await add(there, other, kind, 'one')
  await until(() => taken.length === 1)
  await other.start()
  expect(await other.hasten(kind.name, 'one', 100)).toBe(false)
  expect(taken).toEqual([here.ctx.db.cluster!.node.id])
  world.goesOn()
  await Promise.all([early.stop(), other.stop()])
})

test('of two nodes that look at once, one takes a step', async () => {
  const taken: string[] = []
  const kind = kindOf('contested', async (_ctx, { key }) => void taken.push(key), { concurrency: 20 })
  const runners = [runnerAt(here, kind), runnerAt(there, kind)]
  const keys = Array.from({ length: 20 }, (_, i) => String(i))
  for (const key of keys) await add(here, runners[0]!, kind, key)
  await Promise.all(runners.map((runner) => runner.start()))
  await Promise.all(runners.map((runner) => runner.workOff()))
  await until(() => taken.length >= keys.length)
  expect(taken.toSorted()).toEqual(keys.toSorted())
  await Promise.all(runners.map((runner) => runner.stop()))
})

test('what a node holds stays with it when another one starts, and goes on when it is gone', async () => {
  const world = theWorld()
  const ids: string[] = []
  const kind = kindOf('held', async (_ctx, { id }) => {
    ids.push(id)
    if (ids.length === 1) await world.waits
  })
  const [one, other] = [runnerAt(here, kind), runnerAt(there, kind)]
  await one.start()
  await add(here, one, kind, 'only')
  await until(() => ids.length === 1)
  await other.start()
  await other.reclaim()
  await other.workOff()
  expect(ids).toHaveLength(1)
  expect(await rowsOf('held')).toEqual([{ taken_by: here.ctx.db.cluster!.node.id, tries: 1 }])

  await here.damage('step', { kind: 'held' }, { taken_by: 'a node that was killed' })
  await other.reclaim()
  await until(() => ids.length === 2)
  expect(ids[1]).toBe(ids[0]!)
  world.goesOn()
  await Promise.all([one.stop(), other.stop()])
  expect(await rowsOf('held')).toEqual([])
})

test('a claim on a handle outlives the start of another node, and ends with the node that made it', async () => {
  const claim = (handle: string, node: string) =>
    here.plant('name_claim', {
      handle,
      did: 'did:plc:nobody',
      attempt: handle,
      held_until: cluster.clock.now() + 300_000,
      attempt_by: node,
    })
  const underWay = async () =>
    (await here.rows('name_claim')).flatMap(({ handle, attempt }) => (attempt === null ? [] : [handle]))
  await claim('mine.test', here.ctx.db.cluster!.node.id)
  await claim('of-the-dead.test', 'a node that was killed')
  // Nodes look for what others left behind without being asked.
  await until(async () => (await underWay()).length === 1)
  await cluster.add()
  expect(await underWay()).toEqual(['mine.test'])
})
