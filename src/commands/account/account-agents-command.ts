import { adminCommand } from '../admin-command.ts'
import { table } from '../report.ts'

interface AgentsView {
  agents: { type: string; status: string; count: number; issuer?: string; trusted?: boolean }[]
}

const statuses: Record<string, string> = { active: 'waiting', claimed: 'confirmed', revoked: 'ended' }

export const accountAgentsCommand = adminCommand({
  summary: 'Count the programs that act for accounts.',
  details: `Counts by registration type and, for programs that an identity provider vouches for, by provider. Pending
programs have no access until an account holder confirms them.`,
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
