import { agentCommand, openAgent } from './agent-command.ts'

/** Longer than a code is good for, so that the server says when it is over. */
const MAX_WAIT_MILLIS = 3600_000

export const agentWaitCommand = agentCommand({
  name: 'agent wait',
  summary: 'Wait until the account holder has confirmed the agent.',
  details: 'Asks the server every five seconds, or less often if it says so, until the code is confirmed or has expired.',
  async run(invocation) {
    const agent = await openAgent(invocation)
    await agent.wait(MAX_WAIT_MILLIS)
    const { scopeWords } = await import('../agent-client/agent-faults.ts')
    const [did, { scopes }] = [await agent.did(), await agent.access()]
    invocation.terminal.out(`Confirmed: the agent acts for ${did}, with the scopes ${scopeWords(scopes)}.`)
  },
})
