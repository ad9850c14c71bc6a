import { operated } from './operated.ts'
import { chosenSteps, stepCount } from './step-choice.ts'

export const stepDropCommand = operated({
  name: 'step drop',
  summary: 'Give up a step, or all of a kind.',
  parameters: ['<id or kind>'],
  details: 'They are not done any more, and not listed.',
  async run({ server, positionals: [name] }) {
    const value = await server.post<{ dropped: number }>('/v1/admin/steps/drop', await chosenSteps(server, name))
    return { value, text: `${stepCount(value.dropped)} dropped.` }
  },
})
