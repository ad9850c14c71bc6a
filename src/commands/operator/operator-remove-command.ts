import { adminCommand } from '../admin-command.ts'
import { findAccount, nameOf, NAMED_BY } from '../account/operator-accounts.ts'

export const operatorRemoveCommand = adminCommand({
  summary: 'Remove the role of an account, and end its sessions as an operator.',
  parameters: ['<account>'],
  details: NAMED_BY,
  async run({ server, positionals: [name = ''] }) {
    const account = await findAccount(server, name)
    const value = await server.post('/v1/admin/operators', { account: account.did, role: null })
    return { value, text: `${nameOf(account)} has no role any more.` }
  },
})
