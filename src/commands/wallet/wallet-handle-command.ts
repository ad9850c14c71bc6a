import { identityCommand } from './wallet-command.ts'

export const walletHandleCommand = identityCommand({
  summary: 'Change the handle.',
  parameters: ['<handle>'],
  details: 'To use your own domain, first make it resolve to the DID that "holdfast wallet show" prints.',
  async run({ terminal, wallet, positionals: [handle = ''] }) {
    const { changeHandle } = await import('../../wallet/wallet-account.ts')
    terminal.out(`The handle is now ${await changeHandle(wallet, handle.replace(/^@/, '').toLowerCase())}.`)
  },
})
