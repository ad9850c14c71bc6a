import { setTimeout as sleep } from 'node:timers/promises'
import { OperatorError } from '../base/operator-error.ts'
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
  async run({ terminal: whole, ...invocation }) {
    const closing = new AbortController()
    const terminal = { ...whole, pause: (millis: number) => pauseUntil(closing.signal, millis) }
    const agent = await agentFor({ ...invocation, terminal })
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
    closing.abort()
    await server.close()
  },
})

/** A program that waits for a confirmation must not outlive the assistant. */
const pauseUntil = (signal: AbortSignal, millis: number): Promise<void> =>
  sleep(millis, undefined, { signal }).catch((cause: unknown) => {
    throw new OperatorError('the assistant has gone', { cause })
  })

async function agentFor(invocation: Invocation) {
  const known = await findAgent(invocation)
  if (known !== null) return known
  const { server } = invocation.options
  if (typeof server !== 'string')
    throw new Misuse(`there is no agent at ${await agentPath(invocation)}: add --server, or run "holdfast agent register" first`)
  return makeAgent(invocation, await newAgent(invocation, server))
}
