import { HOUR_MILLIS } from '../../base/durations.ts'
import { agentCommand, openAgent } from './agent-command.ts'

/** Longer than a code is valid, so that the server says when it has expired. */
const MAX_WAIT_MILLIS = HOUR_MILLIS

export const agentWaitCommand = agentCommand({
  summary: 'Wait until the account holder has confirmed the agent.',
  details:
    'Polls the server every five seconds, or less often if the server asks for that, until the code is confirmed or expires.',
  async run(invocation) {
    const agent = await openAgent(invocation)
    await agent.wait(MAX_WAIT_MILLIS)
    const { scopeWords } = await import('../../agent-client/agent-faults.ts')
    const [did, { scopes }] = [await agent.did(), await agent.access()]
    invocation.terminal.out(`Confirmed: the agent acts for ${did} with the scopes ${scopeWords(scopes)}.`)
  },
})
