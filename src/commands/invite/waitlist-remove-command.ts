import { adminCommand } from '../admin-command.ts'

export const waitlistRemoveCommand = adminCommand({
  summary: 'Take an address off the waiting list.',
  parameters: ['<address>'],
  details: '',
  async run({ server, positionals: [email = ''] }) {
    const value = await server.post('/v1/admin/waitlist/remove', { email })
    return { value, text: `${email} is off the list.` }
  },
})
