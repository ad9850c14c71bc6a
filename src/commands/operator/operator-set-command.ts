import { adminCommand } from '../admin-command.ts'
import { findAccount, nameOf, NAMED_BY } from '../account/operator-accounts.ts'

export const operatorSetCommand = adminCommand({
  summary: 'Give an account of this server a role: owner, operator, moderator or invite-steward.',
  parameters: ['<account>', '<role>'],
  details: `${NAMED_BY}

With a role, the account signs in at /admin, or with "operator sign-in", with its own password. An account has one role;
a new role replaces it, and ends the account's sessions as an operator. docs/console.md says what each role may do.`,
  async run({ server, positionals: [name = '', role = ''] }) {
    const account = await findAccount(server, name)
    const value = await server.post('/v1/admin/operators', { account: account.did, role })
    return { value, text: `${nameOf(account)} is ${role}.` }
  },
})
