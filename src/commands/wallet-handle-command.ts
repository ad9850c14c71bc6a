import { identityCommand } from './wallet-command.ts'

export const walletHandleCommand = identityCommand({
  name: 'wallet handle',
  summary: 'Change the handle.',
  parameters: ['<handle>'],
  details: 'A handle of your own domain has to lead to the DID first; "holdfast wallet show" prints the DID.',
  async run({ terminal, wallet, positionals: [handle = ''] }) {
    const { changeHandle } = await import('../wallet/wallet-account.ts')
    terminal.out(`The handle is now ${await changeHandle(wallet, handle.replace(/^@/, '').toLowerCase())}.`)
  },
})
