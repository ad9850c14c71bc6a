import { identityCommand } from './wallet-command.ts'

export const walletRotateKeyCommand = identityCommand({
  name: 'wallet rotate-key',
  summary: 'Replace the signing key of the repository.',
  details: `The server makes the key, this wallet signs it into the identity, and everything that is written afterwards
is signed with it. For a did:plc. A command that was interrupted is finished by the next one.`,
  async run({ terminal, wallet }) {
    const { rotateRepoKey } = await import('../wallet/wallet-operations.ts')
    terminal.out(`The repository is now signed with ${await rotateRepoKey(wallet)}.`)
  },
})
