import { adminCommand } from '../admin-command.ts'
import { NAMED_BY } from '../account/operator-accounts.ts'
import { OF_WHOM, quotaTarget, quotaText, type QuotaView } from './operator-quotas.ts'

export const quotaShowCommand = adminCommand({
  summary: 'Show how much an account, or every account, may store.',
  parameters: ['[account]'],
  details: `${OF_WHOM}\n\n${NAMED_BY}`,
  async run({ server, positionals: [name] }) {
    const { path, whose } = await quotaTarget(server, name)
    const view = await server.get<QuotaView>(path)
    return { value: view, text: quotaText(whose, view) }
  },
})
