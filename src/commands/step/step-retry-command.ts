import { adminCommand } from '../admin-command.ts'
import { chosenSteps, stepCount } from './step-choice.ts'

export const stepRetryCommand = adminCommand({
  summary: 'Retry a step, or all steps of a kind, now.',
  parameters: ['<id or kind>'],
  details: 'Also retries steps that failed permanently. Resets their number of tries.',
  async run({ server, positionals: [name] }) {
    const value = await server.post<{ retried: number }>('/v1/admin/steps/retry', await chosenSteps(server, name))
    return { value, text: `${stepCount(value.retried)} will be retried now.` }
  },
})
