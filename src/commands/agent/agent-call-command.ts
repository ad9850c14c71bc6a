import { Misuse, type Terminal } from '../command.ts'
import { restOfInput } from '../prompts.ts'
import { agentCommand, openAgent } from './agent-command.ts'

export const agentCallCommand = agentCommand({
  summary: 'Call one XRPC method as the agent, and print the response.',
  parameters: ['<method>'],
  details: `Calls a query, or with --post a procedure, with JSON from standard input as the body, if there is any.
For example: holdfast agent call app.bsky.feed.getTimeline --query limit=5`,
  options: {
    query: { value: 'QUERY', doc: 'Parameters, as in a URL: limit=5&cursor=abc.' },
    post: { doc: 'Call a procedure, with JSON from standard input as the body.' },
    proxy: {
      value: 'SERVICE',
      doc: 'Make the server proxy the request to this service, such as did:web:api.example.com#bsky_appview.',
    },
  },
  async run(invocation) {
    const { terminal, options, flags, positionals } = invocation
    const { parseNsid } = await import('../../protocol/identifiers.ts')
    const nsid = parseNsid(positionals[0] ?? '')
    if (nsid === null) throw new Misuse(`${positionals[0]} is not the name of a method`)
    const { query, proxy } = options
    const json = flags.has('post') ? await jsonFrom(terminal) : undefined
    const agent = await openAgent(invocation)
    const answer = await agent.call(nsid, {
      method: flags.has('post') ? 'POST' : 'GET',
      ...(json !== undefined && { json }),
      ...(query !== undefined && { query: new URLSearchParams(query) }),
      ...(proxy !== undefined && { proxy }),
    })
    terminal.out(JSON.stringify(answer, null, 2))
  },
})

/** Undefined if there is no input. Throws `Misuse` if it is not JSON. */
async function jsonFrom(terminal: Terminal): Promise<unknown> {
  const text = await restOfInput(terminal)
  if (text.trim() === '') return undefined
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new Misuse(`standard input is not JSON: ${(error as Error).message}`)
  }
}
