import { operated } from './operated.ts'
import { chosenSteps, stepCount } from './step-choice.ts'

export const stepRetryCommand = operated({
  name: 'step retry',
  summary: 'Try a step, or all of a kind, again now.',
  parameters: ['<id or kind>'],
  details: 'Also those that have failed for good, with all their tries.',
  async run({ server, positionals: [name] }) {
    const value = await server.post<{ retried: number }>('/v1/admin/steps/retry', await chosenSteps(server, name))
    return { value, text: `${stepCount(value.retried)} will be tried now.` }
  },
})
