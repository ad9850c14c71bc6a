/** What operators see of a service that consists of several nodes. */
import { route } from '../../../http/endpoint.ts'
import type { Config } from '../../../platform/configuration/config.ts'
import type { Cluster, Database } from '../../../platform/database/database.ts'
import { isOfPass } from '../../../platform/running/sweep-passes.ts'
import { wireTime, wireTimeOrNull } from '../../../protocol/identifiers.ts'
import { unnumberedEvents } from '../../data/firehose/firehose.ts'
import { isLeaseInUse } from '../../push/iroh/iroh.ts'
import { operator } from '../operators/operators.ts'

export const clusterRoutes = [
  /**
   * On SQLite there is one node, which needs no list: `node` and `unnumberedEvents` are null, and the lists are empty.
   */
  route('GET', '/v1/admin/cluster', {
    auth: operator('observe'),
    async handler({ ctx: { config, db } }) {
      const { cluster } = db
      const state =
        cluster === null
          ? { node: null, nodes: [], leases: [], unnumberedEvents: null }
          : await stateOf(config, db, cluster)
      return { database: db.dialect.name, ...state }
    },
  }),
]

async function stateOf(config: Config, db: Database, cluster: Cluster) {
  const [nodes, leases, { count, oldestAt }] = await Promise.all([
    cluster.nodes(),
    cluster.leases(),
    unnumberedEvents(db),
  ])
  const nameOf = new Map(nodes.map(({ id, name }) => [id, name]))
  return {
    /** Id of the node that answers. */
    node: cluster.node.id,
    nodes: nodes.map(({ startedAt, heartbeatAt, ...node }) => ({
      ...node,
      startedAt: wireTime(startedAt),
      heartbeatAt: wireTime(heartbeatAt),
    })),
    // Between its passes, the lease of a sweep is free.
    leases: leases
      .filter(({ name, isHeld }) => isHeld || (!isOfPass(name) && isLeaseInUse(config, name)))
      .map(({ name, fence, holder, takenAt, isHeld }) => ({
        name,
        fence,
        holder: isHeld ? { id: holder, name: nameOf.get(holder) ?? null } : null,
        takenAt: wireTime(takenAt),
      })),
    /** Events that no subscriber has seen, because they have no number yet. */
    unnumberedEvents: { count, oldestAt: wireTimeOrNull(oldestAt) },
  }
}
