import { OperatorError } from '../../base/operator-error.ts'
import { agentCommand, agentPath, openAgent } from './agent-command.ts'
import { Misuse, type Invocation, type Terminal } from '../command.ts'
import { openWallet } from '../wallet/wallet-command.ts'

export const agentRevokeCommand = agentCommand({
  summary: 'As the account holder, end the agent and delete its file.',
  details: `An agent cannot end itself. This requires the account's password (prompted for, or the first line of standard input) or
its wallet. The agent's tokens stop working at once. The account page can end any agent of the account.`,
  options: {
    account: { value: 'ACCOUNT', doc: 'Handle, DID or email address of the account.' },
    wallet: { value: 'FILE', doc: 'Sign in with this wallet instead of the password.' },
  },
  async run(invocation) {
    const { terminal } = invocation
    const agent = await openAgent(invocation)
    const { registration } = agent.contents
    if (!registration?.id)
      throw new OperatorError(
        "the agent's file does not contain its registration id: end the agent on the account page",
      )
    await asHolder(invocation, agent.server.url, registration.id)
    const { rmSync } = await import('node:fs')
    rmSync(await agentPath(invocation))
    terminal.out(`The agent ${registration.id} no longer has access to the account, and its file is deleted.`)
  },
})

async function asHolder(invocation: Invocation, url: string, registrationId: string): Promise<void> {
  const { fetchJson, refusalOf, textOf } = await import('../../base/server-request.ts')
  const post = async (path: string, token: string | null, json: object = {}) => {
    const headers = { 'content-type': 'application/json', ...(token !== null && { authorization: `Bearer ${token}` }) }
    const answer = await fetchJson(url + path, { method: 'POST', headers, body: JSON.stringify(json) })
    if (answer.status !== 200) throw refusalOf(url, answer)
    return (answer.body ?? {}) as Readonly<Record<string, unknown>>
  }
  const revoke = (token: string) => post(`/v1/agents/${encodeURIComponent(registrationId)}/revoke`, token)
  const { wallet: walletFile, account } = invocation.options
  if (walletFile !== undefined) {
    const { asOwner } = await import('../../wallet/wallet-sessions.ts')
    const wallet = await openWallet({ ...invocation, options: { file: walletFile } })
    if (wallet.server.url !== url)
      throw new OperatorError(`the wallet is for ${wallet.server.url}, and the agent is registered at ${url}`)
    await asOwner(wallet, revoke)
    return
  }
  if (account === undefined) throw new Misuse('name the account: add --account or --wallet')
  const session = await post('/xrpc/com.atproto.server.createSession', null, {
    identifier: account,
    password: await passwordFor(invocation),
  })
  try {
    await revoke(textOf(session, 'accessJwt'))
  } finally {
    await signOut(invocation.terminal, url, textOf(session, 'refreshJwt'))
  }
}

/** Signing out may fail, which changes nothing about the agent. */
async function signOut(terminal: Terminal, url: string, refreshJwt: string): Promise<void> {
  const { fetchJson, refusalOf } = await import('../../base/server-request.ts')
  const headers = { authorization: `Bearer ${refreshJwt}` }
  const fault = await fetchJson(`${url}/xrpc/com.atproto.server.deleteSession`, { method: 'POST', headers }).then(
    (answer) => (answer.status === 200 ? null : refusalOf(url, answer)),
    (error: Error) => error,
  )
  if (fault !== null) terminal.err(`warning: could not end the session that this command opened: ${fault.message}`)
}

async function passwordFor({ terminal }: Invocation): Promise<string> {
  const password = terminal.isInteractive
    ? await terminal.ask('Password of the account: ', { hidden: true })
    : await terminal.nextLine()
  if (!password) throw new Misuse('there is no password on standard input')
  return password
}
