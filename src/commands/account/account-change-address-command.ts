import { adminCommand } from '../admin-command.ts'
import { findAccount, nameOf, NAMED_BY } from './operator-accounts.ts'

export const accountChangeAddressCommand = adminCommand({
  summary: 'Give an account another email address.',
  parameters: ['<account>', '<address>'],
  details: `${NAMED_BY}
The address counts as unconfirmed. No mail is sent to the previous address.`,
  async run({ server, positionals: [name = '', email = ''] }) {
    const account = await findAccount(server, name)
    const changed = await server.post<{ did: string; email: string }>(
      `/v1/admin/accounts/${encodeURIComponent(account.did)}/email`,
      { email },
    )
    return { value: changed, text: `${nameOf(account)} has the address ${changed.email}.` }
  },
})
