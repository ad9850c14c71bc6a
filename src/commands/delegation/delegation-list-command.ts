import { adminCommand } from '../admin-command.ts'
import { findAccount, NAMED_BY } from '../account/operator-accounts.ts'
import { pages } from '../operator-pages.ts'
import { minute, table } from '../report.ts'

interface ListedDelegation {
  id: string
  did: string
  handle?: string
  delegateDid: string
  delegateHandle?: string
  status: string
  expiresAt?: string
}

const words: Readonly<Record<string, string>> = { invited: 'invited', active: 'accepted' }

export const delegationListCommand = adminCommand({
  summary: 'List delegations: which account acts for which, oldest first.',
  details: `Lists open invitations and active delegations. With an account, only those of its delegates.

${NAMED_BY}`,
  parameters: ['[account]'],
  async run({ server, positionals: [name] }) {
    const did = name === undefined ? undefined : (await findAccount(server, name)).did
    const found = await pages<ListedDelegation>(server, '/v1/admin/delegations', 'delegations', { did })
    const rows = found.map((one) => [
      one.id,
      one.handle ?? one.did,
      one.delegateHandle ?? one.delegateDid,
      words[one.status] ?? one.status,
      minute(one.expiresAt ?? null) ?? '',
    ])
    return { value: found, text: table(['DELEGATION', 'ACCOUNT', 'DELEGATE', 'STATUS', 'ENDS'], rows) }
  },
})
