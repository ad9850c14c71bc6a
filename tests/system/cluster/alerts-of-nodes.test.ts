/** Alerts on several servers: what concerns all is told once, and what concerns a node names it. */
import { expect, test } from 'bun:test'
import { lookAtNode } from '../../../src/features/operations/alerts/alert-pass.ts'
import { startCluster, type TestCluster } from '../../support/servers/cluster.ts'
import type { ConfigOverrides } from '../../support/servers/config.ts'
import { thrownBy } from '../../support/thrown.ts'

const SWEEP = 'admin-nonce-sweep'
const alerts: ConfigOverrides['alerts'] = { mailTo: ['operator@example.org'], diskFreeBytes: 0 }

async function pass({ clock, nodes }: TestCluster): Promise<void> {
  clock.advance({ secs: 60 })
  await Promise.all(nodes.map((node) => node.runSweep('alerts')))
  for (const node of nodes) await node.runSteps()
}

const told = ({ nodes }: TestCluster) => nodes.flatMap(({ mails }) => mails.map(({ subject }) => subject))

test('nodes that look at the same time tell it once, whichever of them has failed', async () => {
  await using cluster = await startCluster(2, { alerts })
  const [here, there] = cluster.nodes as [TestCluster['nodes'][0], TestCluster['nodes'][0]]
  const bringBack = await here.hide('operator_nonce')
  for (const node of [here, there, here]) expect(await thrownBy(node.runSweep(SWEEP))).toThrow()
  await bringBack()
  await pass(cluster)
  await pass(cluster)
  expect(told(cluster)).toEqual([expect.stringContaining(`Alert: a sweep keeps failing (${SWEEP})`)])
  await there.runSweep(SWEEP)
  for (let minute = 0; minute < 20; minute++) await pass(cluster)
  expect(told(cluster).toSorted()).toEqual([
    expect.stringContaining('Alert: a sweep keeps failing'),
    expect.stringContaining('Over: a sweep keeps failing'),
  ])
})

test('each node looks at its own disk, and the alert of one that stops for good ends', async () => {
  await using cluster = await startCluster(1, { alerts, node: { name: 'here' } })
  const there = await cluster.add({ node: { name: 'there' }, alerts: { ...alerts, diskFreeBytes: 2 ** 50 } })
  cluster.clock.advance({ secs: 60 })
  await lookAtNode(there.ctx)
  await lookAtNode(cluster.nodes[0]!.ctx)
  for (const node of cluster.nodes) await node.runSteps()
  expect(told(cluster)).toEqual([expect.stringContaining('Alert: the disk is nearly full (there)')])
  const here = cluster.nodes[0]!
  await there.stop()
  for (let minute = 0; minute < 20; minute++) {
    cluster.clock.advance({ secs: 60 })
    await here.runSweep('alerts')
  }
  await here.runSteps()
  expect(here.mails.map(({ subject }) => subject)).toContainEqual(
    expect.stringContaining('Over: the disk is nearly full (there)'),
  )
})
