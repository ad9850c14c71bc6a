import { accountCommand, nameOf } from './operator-accounts.ts'

export const accountChangeAddressCommand = accountCommand({
  summary: 'Give an account another email address.',
  parameters: ['<address>'],
  details: 'The address counts as unconfirmed. No mail is sent to the previous address.',
  async run({ server, account, path, positionals: [email = ''] }) {
    const changed = await server.post<{ did: string; email: string }>(`${path}/email`, { email })
    return { value: changed, text: `${nameOf(account)} has the address ${changed.email}.` }
  },
})
