import { OperatorError } from '../base/operator-error.ts'
import type { RegistrationType } from '../agent-client/agent-contents.ts'
import { agentCommand, findAgent, makeAgent } from './agent-command.ts'
import { Misuse, type Invocation, type Option, type Terminal } from './command.ts'

/** How an agent registers; "holdfast mcp" takes them too. */
export const registrationOptions = {
  server: { value: 'URL', doc: 'The server that hosts the account.' },
  type: { value: 'TYPE', doc: 'anonymous (the default), service_auth or identity_assertion.' },
  'login-hint': { value: 'ADDRESS', doc: 'The mail address of the account, for service_auth.' },
  'assertion-file': { value: 'FILE', doc: "The provider's assertion, for identity_assertion; read again whenever a new one is needed." },
} as const satisfies Record<string, Option>

export const agentRegisterCommand = agentCommand({
  name: 'agent register',
  summary: 'Register a program that is to act for an account, and get the code that the account holder confirms.',
  details: `With anonymous, whoever enters the code becomes the account that the agent acts for. With service_auth, only the account with the
address can. With identity_assertion, a provider that the server trusts vouches for the agent by an ID-JAG, on standard
input or in a file; if the server has confirmed the agent before, it needs no code.

The account holder enters the code at the address that is shown, and reads there what the agent may do.`,
  options: { ...registrationOptions, replace: { doc: 'Forget the registration that the file holds.' } },
  async run(invocation) {
    const { terminal, options } = invocation
    const agent = await agentToRegister(invocation)
    const { type, assertionFile } = agent.contents
    const assertion = type === 'identity_assertion' && assertionFile === null ? await assertionFrom(terminal) : undefined
    if (agent.contents.registration !== null && type !== 'identity_assertion' && options['replace'] !== true)
      throw new OperatorError('this agent is registered already: "holdfast agent wait" goes on with it, and --replace forgets it')
    const claim = await agent.register(assertion)
    if (claim === null) return terminal.out(`Registered at ${agent.server.url}, as an agent that was confirmed before.`)
    terminal.out(`Open   ${claim.verificationUri}
Enter  ${claim.userCode}
Until  ${claim.expiresAt}

Then run "holdfast agent wait".`)
  },
})

async function agentToRegister(invocation: Invocation) {
  const known = await findAgent(invocation)
  const { server } = invocation.options
  const replaces = invocation.options['replace'] === true
  if (known !== null && server === undefined) return known
  if (typeof server !== 'string') throw new Misuse('the server is missing: add --server')
  const contents = await newAgent(invocation, server)
  if (known === null) return makeAgent(invocation, contents)
  const isSame = contents.server === known.server.url && contents.type === known.contents.type
  if (!replaces && isSame) return known
  if (!replaces)
    throw new OperatorError(`this agent is registered at ${known.server.url} as ${known.contents.type}: --replace forgets that`)
  known.forget(contents)
  return known
}

/** The agent that the options describe. Throws `Misuse` if they do not fit together. */
export async function newAgent({ options }: Invocation, server: string) {
  const [{ freshAgent, registrationTypes }, { originOf }] = await Promise.all([
    import('../agent-client/agent-contents.ts'),
    import('../base/server-request.ts'),
  ])
  const { type: given = 'anonymous', 'login-hint': loginHint, 'assertion-file': assertionFile } = options
  const type = registrationTypes.find((each): each is RegistrationType => each === given)
  if (type === undefined) throw new Misuse(`there is no type "${given}"; there are: ${registrationTypes.join(', ')}`)
  if ((type === 'service_auth') !== (loginHint !== undefined)) throw new Misuse('--login-hint belongs to --type service_auth')
  if (assertionFile !== undefined && type !== 'identity_assertion')
    throw new Misuse('--assertion-file belongs to --type identity_assertion')
  return freshAgent({
    server: originOf(server),
    type,
    loginHint: typeof loginHint === 'string' ? loginHint.trim() : null,
    assertionFile: typeof assertionFile === 'string' ? (await import('node:path')).resolve(assertionFile) : null,
  })
}

async function assertionFrom(terminal: Terminal): Promise<string> {
  const text = (await terminal.nextLine())?.trim()
  if (!text) throw new OperatorError('there is no assertion on standard input')
  return text
}
