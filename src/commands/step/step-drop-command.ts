import { adminCommand } from '../admin-command.ts'
import { chosenSteps, stepCount } from './step-choice.ts'

export const stepDropCommand = adminCommand({
  summary: 'Drop a step, or all steps of a kind.',
  parameters: ['<id or kind>'],
  details: 'Dropped steps never run, and are no longer listed.',
  async run({ server, positionals: [name] }) {
    const value = await server.post<{ dropped: number }>('/v1/admin/steps/drop', await chosenSteps(server, name))
    return { value, text: `${stepCount(value.dropped)} dropped.` }
  },
})
