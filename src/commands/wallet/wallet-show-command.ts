import { facts, jsonOption } from '../report.ts'
import { identityCommand } from './wallet-command.ts'
import type { Wallet } from '../../wallet/wallet.ts'

export const walletShowCommand = identityCommand({
  summary: 'Show the identity, and who can move it.',
  details:
    "Lists the identity's rotation keys from the directory, highest first: each can undo changes by those below it.",
  options: jsonOption,
  async run({ terminal, wallet, flags }) {
    const { identityView } = await import('../../wallet/wallet-view.ts')
    const view = await identityView(wallet)
    if (flags.has('json')) return terminal.out(JSON.stringify(view, null, 2))
    const { keys, handle, did, server, deviceKey, repositoryKey, shares } = view
    const ranked = keys.map(({ key, holder }, rank) => `  ${rank + 1}. ${key}\n     ${holderWords[holder]}`)
    terminal.out(
      facts({ handle, did, server, 'device key': deviceKey, 'repository key': repositoryKey, share: shares }),
    )
    if (keys.length > 0) terminal.out(`\nKeys that may change this identity:\n${ranked.join('\n')}`)
    warn(terminal, wallet, view)
  },
})

const holderWords = {
  device: 'this wallet',
  recovery: 'the recovery key, restored from two shares',
  server: 'the server that signs for the repository',
  other: 'unknown: another device of yours, or another person',
} as const

function warn(
  terminal: { err(text: string): void },
  wallet: Wallet,
  { keys, serverHere }: { keys: readonly { holder: string }[]; serverHere: boolean },
) {
  if (keys.length > 0 && !keys.some(({ holder }) => holder === 'device'))
    terminal.err('This wallet can no longer change the identity: its key is not listed.')
  if (!serverHere) terminal.err(`The identity does not name ${wallet.server.url} as its server.`)
}
