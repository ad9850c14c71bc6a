import { adminCommand } from '../admin-command.ts'
import { minute, table } from '../report.ts'

interface ClusterView {
  database: 'sqlite' | 'postgres'
  node: string | null
  nodes: {
    id: string
    name: string
    version: string
    startedAt: string
    heartbeatAt: string
    isAlive: boolean
    connections: number
    busyConnections: number
  }[]
  leases: { name: string; holder: { id: string; name: string | null } | null; takenAt: string; fence: number }[]
  unnumberedEvents: { count: number; oldestAt: string | null } | null
}

export const clusterStatusCommand = adminCommand({
  summary: 'List the nodes and who holds each lease.',
  details: 'Exits with 1 if a node misses its heartbeats, or if no node holds a lease.',
  async run({ server }) {
    const state = await server.get<ClusterView>('/v1/admin/cluster')
    if (state.database === 'sqlite')
      return { value: state, text: 'This server keeps its data in SQLite, so it is the only node.' }
    const nodes = state.nodes.map(
      ({ id, name, version, startedAt, heartbeatAt, isAlive, connections, busyConnections }) => [
        name,
        id,
        version,
        minute(startedAt)!,
        isAlive ? 'alive' : `silent since ${minute(heartbeatAt)}`,
        `${busyConnections} of ${connections} busy`,
      ],
    )
    const leases = state.leases.map(({ name, holder, takenAt }) => [
      name,
      holder === null ? 'none' : (holder.name ?? holder.id),
      minute(takenAt)!,
    ])
    return {
      value: state,
      text: [
        table(['NODE', 'ID', 'VERSION', 'STARTED', 'STATE', 'CONNECTIONS'], nodes),
        table(['LEASE', 'HOLDER', 'SINCE'], leases),
        waitingEvents(state.unnumberedEvents!),
      ].join('\n\n'),
      failed: state.nodes.some(({ isAlive }) => !isAlive) || state.leases.some(({ holder }) => holder === null),
    }
  },
})

const waitingEvents = ({ count, oldestAt }: { count: number; oldestAt: string | null }): string =>
  oldestAt === null
    ? 'Every event has its number.'
    : `${count} events are waiting for a number, the oldest since ${minute(oldestAt)}.`
