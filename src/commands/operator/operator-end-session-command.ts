import { adminCommand } from '../admin-command.ts'

export const operatorEndSessionCommand = adminCommand({
  summary: 'End the session of an operator.',
  parameters: ['<id>'],
  details: '"operator sessions" lists their ids.',
  async run({ server, positionals: [id = ''] }) {
    const value = await server.post(`/v1/admin/sessions/${encodeURIComponent(id)}/end`)
    return { value, text: 'The session has ended.' }
  },
})
