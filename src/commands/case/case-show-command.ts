import { adminCommand } from '../admin-command.ts'
import { casePath, caseText, type WholeCase } from './operator-cases.ts'

export const caseShowCommand = adminCommand({
  summary: 'Show a case: reports, notes, decision and appeal.',
  parameters: ['<case>'],
  details: '',
  async run({ server, positionals: [id = ''] }) {
    const value = await server.get<WholeCase>(casePath(id))
    return { value, text: caseText(value) }
  },
})
