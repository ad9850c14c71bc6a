import { OperatorError } from '../../base/operator-error.ts'
import type { RegistrationType } from '../../agent-client/agent-contents.ts'
import { MAX_AGENT_NAME_CHARS } from '../../protocol/agent-names.ts'
import { agentCommand, findAgent, makeAgent } from './agent-command.ts'
import { Misuse, type Invocation, type Option, type Terminal } from '../command.ts'

/** Options that say how an agent registers. "holdfast agent mcp" takes them too. */
export const registrationOptions = {
  server: { value: 'URL', doc: 'The server that hosts the account.' },
  name: { value: 'NAME', doc: 'Name that the account holder sees, such as "Calendar".' },
  type: { value: 'TYPE', doc: 'anonymous (the default), service_auth or identity_assertion.' },
  'login-hint': { value: 'ADDRESS', doc: "The account's email address, for service_auth." },
  'assertion-file': {
    value: 'FILE',
    doc: "The provider's assertion, for identity_assertion. Read again when a new one is needed.",
  },
} as const satisfies Record<string, Option>

export const agentRegisterCommand = agentCommand({
  summary: "Register a program as an account's agent, and get the code that the account holder confirms.",
  details: `With anonymous, the agent acts for the account that enters the code. With service_auth, only the account with that email
address can enter it. With identity_assertion, an identity provider that the server trusts vouches for the agent with an
ID-JAG, from standard input or a file. An agent that was confirmed before needs no code then.

The account holder enters the code at the address that is shown, and sees there what the agent may do. The holder sees
the name given with --name on that page, in mails and in the list of programs. Agents without a name look alike.`,
  options: { ...registrationOptions, replace: { doc: 'Overwrite the registration in the file.' } },
  async run(invocation) {
    const { terminal, flags } = invocation
    const agent = await agentToRegister(invocation)
    const { type, assertionFile } = agent.contents
    const assertion =
      type === 'identity_assertion' && assertionFile === null ? await assertionFrom(terminal) : undefined
    if (agent.contents.registration !== null && type !== 'identity_assertion' && !flags.has('replace'))
      throw new OperatorError(
        'this agent is already registered: run "holdfast agent wait" to continue, or add --replace to start over',
      )
    const claim = await agent.register(assertion)
    if (claim === null)
      return terminal.out(
        `Registered at ${agent.server.url}. The account holder confirmed this agent before, so no code is needed.`,
      )
    terminal.out(`Open   ${claim.verificationUri}
Enter  ${claim.userCode}
Until  ${claim.expiresAt}

Then run "holdfast agent wait".`)
  },
})

async function agentToRegister(invocation: Invocation) {
  const known = await findAgent(invocation)
  const { server } = invocation.options
  const replaces = invocation.flags.has('replace')
  if (known !== null && server === undefined) return known
  if (server === undefined) throw new Misuse('the server is missing: add --server')
  const contents = await newAgent(invocation, server)
  if (known === null) return makeAgent(invocation, contents)
  const isSame = contents.server === known.server.url && contents.type === known.contents.type
  if (!replaces && isSame) return known
  if (!replaces)
    throw new OperatorError(
      `this agent is registered at ${known.server.url} as ${known.contents.type}: add --replace to overwrite it`,
    )
  known.forget(contents)
  return known
}

/** Returns the agent that the options describe. Throws `Misuse` if they do not fit together. */
export async function newAgent({ options }: Invocation, server: string) {
  const [{ freshAgent, registrationTypes }, { serverOrigin }] = await Promise.all([
    import('../../agent-client/agent-contents.ts'),
    import('../../base/server-request.ts'),
  ])
  const { name, type: given = 'anonymous', 'login-hint': loginHint, 'assertion-file': assertionFile } = options
  const type = registrationTypes.find((each): each is RegistrationType => each === given)
  if (type === undefined) throw new Misuse(`there is no type "${given}"; there are: ${registrationTypes.join(', ')}`)
  if ((type === 'service_auth') !== (loginHint !== undefined))
    throw new Misuse('--login-hint requires --type service_auth')
  if (assertionFile !== undefined && type !== 'identity_assertion')
    throw new Misuse('--assertion-file requires --type identity_assertion')
  return freshAgent({
    server: serverOrigin(server),
    type,
    name: name === undefined ? null : agentName(name),
    loginHint: loginHint?.trim() ?? null,
    assertionFile: assertionFile === undefined ? null : (await import('node:path')).resolve(assertionFile),
  })
}

/** Servers show the name in one line. Throws `Misuse` if they would have to change it. */
function agentName(text: string): string {
  const name = text.trim()
  if (name === '' || name.length > MAX_AGENT_NAME_CHARS || /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(name))
    throw new Misuse(`--name takes one line of at most ${MAX_AGENT_NAME_CHARS} characters`)
  return name
}

async function assertionFrom(terminal: Terminal): Promise<string> {
  const text = (await terminal.nextLine())?.trim()
  if (!text) throw new OperatorError('there is no assertion on standard input')
  return text
}
