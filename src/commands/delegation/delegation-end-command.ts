import { adminCommand } from '../admin-command.ts'

export const delegationEndCommand = adminCommand({
  summary: 'End the access of an account that acts for another one, or an invitation to.',
  parameters: ['<id>'],
  details: `"delegation list" prints ids. All apps that the delegate has signed in to the account are signed out at once.
The holder of the account is notified by mail.`,
  async run({ server, positionals: [id = ''] }) {
    const value = await server.post(`/v1/admin/delegations/${encodeURIComponent(id)}/end`)
    return { value, text: 'The delegation has ended.' }
  },
})
