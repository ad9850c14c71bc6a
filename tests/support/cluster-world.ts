/** The nodes of a test file. */
import { startCluster } from './servers/cluster.ts'
import type { ConfigOverrides } from './servers/config.ts'
import type { TestPds } from './servers/server.ts'
import { setUp } from './set-up.ts'

/**
 * Starts nodes that share a PostgreSQL database, before the tests of the file or group. A function as `config` is
 * called once it is their turn to start.
 */
export function useCluster(size: number, config: ConfigOverrides | (() => ConfigOverrides) = {}) {
  const cluster = setUp(() => startCluster(size, typeof config === 'function' ? config() : config))
  const belongsToCluster = () => undefined
  const nodes = Array.from({ length: size }, (_, i) => setUp(() => cluster.nodes[i]!, belongsToCluster))
  return { cluster, nodes: nodes as [TestPds, TestPds, ...TestPds[]] }
}
