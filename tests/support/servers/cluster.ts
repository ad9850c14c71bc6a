/** Servers that share a PostgreSQL database, whichever database the suite runs on: one service at several addresses. */
import type { Overrides } from '../../../src/app.ts'
import { MASTER_KEY, type ConfigOverrides } from './config.ts'
import { TestClock } from '../clock.ts'
import { testDatabase } from './postgres.ts'
import { startServerOn, type TestPds } from './server.ts'

export interface TestCluster extends AsyncDisposable {
  readonly databaseUrl: string
  readonly clock: TestClock
  /** The public address of the service is that of the first. Each has a data directory of its own. */
  readonly nodes: readonly TestPds[]
  /**
   * Start another node, perhaps on a machine whose clock is wrong. It belongs to the cluster, and stops with it.
   */
  add(config?: ConfigOverrides, machine?: { aheadSecs: number }): Promise<TestPds>
}

function wrongClock({ aheadSecs }: { aheadSecs: number }): Overrides {
  const clock = new TestClock()
  clock.jump({ secs: aheadSecs })
  return { clock, machineNow: () => clock.now() }
}

/** Starts `size` nodes, one after another. Without `at`, the database is one that goes with the cluster. */
export async function startCluster(
  size: number,
  config: ConfigOverrides = {},
  { at, ...overrides }: Overrides & { at?: string } = {},
): Promise<TestCluster> {
  const { databaseUrl, drop } = at === undefined ? await testDatabase() : { databaseUrl: at, drop: async () => {} }
  const clock = new TestClock()
  const nodes: TestPds[] = []
  const add = async (more: ConfigOverrides = {}, machine: { aheadSecs: number } | null = null) => {
    const shared = { signingKeyMasterKey: MASTER_KEY, databaseUrl }
    const node = await startServerOn(
      {},
      { ...shared, ...config, ...more },
      { ...overrides, clock, ...(machine && wrongClock(machine)), sharesDatabase: true, publicUrl: nodes[0]?.url },
    )
    nodes.push(node)
    return node
  }
  const cluster: TestCluster = {
    databaseUrl,
    clock,
    nodes,
    add,
    async [Symbol.asyncDispose]() {
      for (const node of nodes.toReversed()) await node[Symbol.asyncDispose]()
      await drop()
    },
  }
  try {
    while (nodes.length < size) await add()
  } catch (error) {
    await cluster[Symbol.asyncDispose]()
    throw error
  }
  return cluster
}
