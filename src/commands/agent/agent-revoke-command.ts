import { OperatorError } from '../../base/operator-error.ts'
import { agentCommand, agentPath, openAgent } from './agent-command.ts'
import { Misuse, type Invocation } from '../command.ts'
import { HolderServer } from '../holder-server.ts'
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
  const path = `/v1/agents/${encodeURIComponent(registrationId)}/revoke`
  const { wallet: walletFile, account } = invocation.options
  if (walletFile !== undefined) {
    const { asOwner } = await import('../../wallet/wallet-sessions.ts')
    const wallet = await openWallet({ ...invocation, options: { file: walletFile } })
    if (wallet.server.url !== url)
      throw new OperatorError(`the wallet is for ${wallet.server.url}, and the agent is registered at ${url}`)
    await asOwner(wallet, (token) => wallet.server.post(path, { token, json: {} }))
    return
  }
  if (account === undefined) throw new Misuse('name the account: add --account or --wallet')
  const server = new HolderServer(url)
  await server.logIn(account, await passwordFor(invocation))
  try {
    await server.post(path, {})
  } finally {
    await server.logOut(invocation.terminal)
  }
}

async function passwordFor({ terminal }: Invocation): Promise<string> {
  const password = terminal.isInteractive
    ? await terminal.ask('Password of the account: ', { hidden: true })
    : await terminal.nextLine()
  if (!password) throw new Misuse('there is no password on standard input')
  return password
}
