import { adminCommand } from '../admin-command.ts'

export const delegationEndCommand = adminCommand({
  summary: 'End a delegation, or withdraw an invitation.',
  parameters: ['<id>'],
  details: `"delegation list" prints ids. All apps that the delegate has signed in to the account are signed out at once.
The account holder is notified by mail.`,
  async run({ server, positionals: [id = ''] }) {
    const value = await server.post(`/v1/admin/delegations/${encodeURIComponent(id)}/end`)
    return { value, text: 'The delegation has ended.' }
  },
})
