import { newAgent, registrationOptions } from './agent-register-command.ts'
import { agentCommand, agentPath, findAgent, makeAgent } from './agent-command.ts'
import { Misuse, type Invocation } from './command.ts'

export const mcpCommand = agentCommand({
  name: 'mcp',
  summary: 'Let an assistant act for an account: a Model Context Protocol server on standard input and output.',
  details: `An assistant starts it and calls its tools: post, reply, like, follow, upload an image, and read timeline, threads, profiles,
notifications and search results. They work on any server that offers agents. If there is no agent yet, it registers
with the options when a tool is called first; the assistant then shows the code for the account holder to confirm. It
ends when standard input does.`,
  options: registrationOptions,
  async run(invocation) {
    const { terminal } = invocation
    const agent = await agentFor(invocation)
    const [{ assistantServer }, { StdioServerTransport }] = await Promise.all([
      import('../agent-client/assistant-server.ts'),
      import('@modelcontextprotocol/sdk/server/stdio.js'),
    ])
    const server = assistantServer(agent, terminal, (error) => terminal.err(`holdfast mcp: ${error.stack ?? error.message}`))
    const { promise: closed, resolve: close } = Promise.withResolvers<void>()
    server.onclose = close
    process.stdin.once('end', close)
    await server.connect(new StdioServerTransport())
    await Promise.race([closed, terminal.outputClosed()])
    await server.close()
  },
})

async function agentFor(invocation: Invocation) {
  const known = await findAgent(invocation)
  if (known !== null) return known
  const { server } = invocation.options
  if (typeof server !== 'string')
    throw new Misuse(`there is no agent at ${await agentPath(invocation)}: add --server, or run "holdfast agent register" first`)
  return makeAgent(invocation, await newAgent(invocation, server))
}
