import { agentCommand, openAgent } from './agent-command.ts'

export const agentTokenCommand = agentCommand({
  name: 'agent token',
  summary: 'Print an access token of the agent, for another program.',
  details: 'The token is for the header "Authorization: Bearer". It lives five minutes, and whoever has it may do what the agent may.',
  async run(invocation) {
    const { token } = await (await openAgent(invocation)).access()
    invocation.terminal.out(token)
  },
})
