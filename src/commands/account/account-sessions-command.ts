import { minute, table } from '../report.ts'
import { accountCommand } from './operator-accounts.ts'

interface Access {
  id: string
  kind: string
  name: string | null
  openedAt: string | null
  usedAt: string | null
  openedWith: string | null
  openedFrom: string | null
}

export const accountSessionsCommand = accountCommand({
  summary: 'List who has access to an account: sessions, apps, agents, browsers and app passwords.',
  details: '"account end-sessions" ends one of them, or all.',
  async run({ server, path }) {
    const { access } = await server.get<{ access: Access[] }>(`${path}/access`)
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
