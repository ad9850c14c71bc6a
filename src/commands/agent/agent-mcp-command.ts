import { setTimeout as sleep } from 'node:timers/promises'
import { OperatorError } from '../../base/operator-error.ts'
import { newAgent, registrationOptions } from './agent-register-command.ts'
import { agentCommand, agentPath, findAgent, makeAgent } from './agent-command.ts'
import { Misuse, type Invocation } from '../command.ts'

export const agentMcpCommand = agentCommand({
  summary: 'Let an assistant act for an account: a Model Context Protocol server on standard input and output.',
  details: `An assistant starts it and calls its tools: post, reply, like, follow, upload an image, and read timeline, threads,
profiles, notifications and search results. They work on any server that offers agents. If there is no agent yet, it
registers on the first tool call, using these options; the assistant then shows the code for the account holder to
confirm. Exits at end of input.`,
  options: {
    ...registrationOptions,
    images: { value: 'FOLDER', doc: 'Folder of images that the assistant may upload. Without it, no file is read.' },
  },
  async run({ terminal: whole, ...invocation }) {
    const closing = new AbortController()
    const terminal = { ...whole, pause: (millis: number) => pauseUntil(closing.signal, millis) }
    const images = await imagesFor(invocation.options)
    const agent = await agentFor({ ...invocation, terminal })
    const [{ assistantServer }, { StdioServerTransport }] = await Promise.all([
      import('../../agent-client/assistant-server.ts'),
      import('@modelcontextprotocol/sdk/server/stdio.js'),
    ])
    const report = (error: Error) => terminal.err(`holdfast agent mcp: ${error.stack ?? error.message}`)
    const server = assistantServer(agent, terminal, report, images)
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
    throw new OperatorError('the assistant has disconnected', { cause })
  })

async function imagesFor({ images }: Invocation['options']) {
  const { openImageFolder } = await import('../../agent-client/image-folder.ts')
  return images === undefined ? null : openImageFolder(images)
}

async function agentFor(invocation: Invocation) {
  const known = await findAgent(invocation)
  if (known !== null) return known
  const { server } = invocation.options
  if (server === undefined)
    throw new Misuse(
      `there is no agent at ${await agentPath(invocation)}: add --server, or run "holdfast agent register" first`,
    )
  return makeAgent(invocation, await newAgent(invocation, server))
}
