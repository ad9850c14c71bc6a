import { accountCommand, nameOf } from '../account/operator-accounts.ts'

export const operatorRemoveCommand = accountCommand({
  summary: 'Remove the role of an account, and end its sessions as an operator.',
  details: '',
  async run({ server, account }) {
    const value = await server.post('/v1/admin/operators', { account: account.did, role: null })
    return { value, text: `${nameOf(account)} has no role any more.` }
  },
})
