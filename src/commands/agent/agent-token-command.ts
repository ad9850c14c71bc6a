import { agentCommand, openAgent } from './agent-command.ts'

export const agentTokenCommand = agentCommand({
  summary: 'Print an access token of the agent, for another program.',
  details: 'Send the token in the header "Authorization: Bearer". It expires after five minutes. Treat it as a secret.',
  async run(invocation) {
    const { token } = await (await openAgent(invocation)).access()
    invocation.terminal.out(token)
  },
})
