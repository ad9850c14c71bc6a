import { identityCommand } from './wallet-command.ts'

export const walletRotateKeyCommand = identityCommand({
  summary: 'Replace the signing key of the repository.',
  details: `For a did:plc. The server creates the key, this wallet adds it to the identity, and all later commits are signed with
it. If the command is interrupted, the next command finishes it.`,
  async run({ terminal, wallet }) {
    const { rotateRepoKey } = await import('../../wallet/wallet-operations.ts')
    terminal.out(`The repository is now signed with ${await rotateRepoKey(wallet)}.`)
  },
})
