import { accountCommand, nameOf } from '../account/operator-accounts.ts'

export const operatorSetCommand = accountCommand({
  summary: 'Give an account of this server a role: owner, operator, moderator or invite-steward.',
  parameters: ['<role>'],
  details: `With a role, the account signs in at /admin, or with "operator sign-in", with its own password. An account has one role;
a new role replaces it, and ends the account's sessions as an operator. docs/console.md says what each role may do.`,
  async run({ server, account, positionals: [role = ''] }) {
    const value = await server.post('/v1/admin/operators', { account: account.did, role })
    return { value, text: `${nameOf(account)} is ${role}.` }
  },
})
