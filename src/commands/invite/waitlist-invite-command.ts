import { adminCommand } from '../admin-command.ts'

export const waitlistInviteCommand = adminCommand({
  summary: 'Mail an invite to an address on the waiting list, and take it off the list.',
  parameters: ['<address>'],
  details: 'The mail has an invite code for one account, unless sign-up requires none.',
  async run({ server, positionals: [email = ''] }) {
    const value = await server.post('/v1/admin/waitlist/invite', { email })
    return { value, text: `The invite to ${email} is on its way.` }
  },
})
