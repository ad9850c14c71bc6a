import { operated } from './operated.ts'
import { table } from './report.ts'

interface AgentsView {
  agents: { type: string; status: string; count: number; issuer?: string; trusted?: boolean }[]
}

const statuses: Record<string, string> = { active: 'waiting', claimed: 'confirmed', revoked: 'ended' }

export const accountAgentsCommand = operated({
  name: 'account agents',
  summary: 'Count the programs that act for accounts.',
  details: `By how they registered and, if an identity provider vouches for them, by provider. A program that waits may
do nothing until the holder of an account confirms it.`,
  async run({ server }) {
    const { agents } = await server.get<AgentsView>('/v1/admin/agents', {})
    const rows = agents.map(({ type, status, count, issuer, trusted }) => [
      type,
      statuses[status] ?? status,
      String(count),
      issuer === undefined ? '' : `${issuer}${trusted ? '' : ' (no longer trusted)'}`,
    ])
    return { value: agents, text: table(['REGISTERED BY', 'STATUS', 'COUNT', 'PROVIDER'], rows) }
  },
})
