import { adminCommand } from '../admin-command.ts'
import { minute, table } from '../report.ts'
import { findAccount, NAMED_BY } from './operator-accounts.ts'

interface Access {
  id: string
  kind: string
  name: string | null
  openedAt: string | null
  usedAt: string | null
  openedWith: string | null
  openedFrom: string | null
}

export const accountSessionsCommand = adminCommand({
  summary: 'List who has access to an account: sessions, apps, agents, browsers and app passwords.',
  parameters: ['<account>'],
  details: `${NAMED_BY}

"account end-sessions" ends one of them, or all.`,
  async run({ server, positionals: [name = ''] }) {
    const { did } = await findAccount(server, name)
    const { access } = await server.get<{ access: Access[] }>(`/v1/admin/accounts/${encodeURIComponent(did)}/access`)
    const rows = access.map((one) => [
      one.kind,
      one.name ?? '',
      one.openedWith ?? '',
      one.openedFrom ?? '',
      minute(one.openedAt) ?? '',
      minute(one.usedAt) ?? '',
      one.id,
    ])
    return { value: access, text: table(['KIND', 'NAME', 'WITH', 'FROM', 'SINCE', 'USED', 'ID'], rows) }
  },
})
