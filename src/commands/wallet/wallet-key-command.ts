import { newWalletOptions, openOrMakeWallet, walletCommand, walletPath } from './wallet-command.ts'

export const walletKeyCommand = walletCommand({
  summary: 'Print the public key of the wallet.',
  details: `Creates the wallet if there is none, so that you can sign up in the browser with its key. Then run "holdfast wallet
adopt" to manage the account.`,
  options: newWalletOptions,
  async run(invocation) {
    const { WalletFile } = await import('../../wallet/wallet-file.ts')
    const isNew = !WalletFile.exists(await walletPath(invocation))
    const wallet = await openOrMakeWallet(invocation)
    // Store the key before it is printed, so that it cannot be lost.
    if (isNew) await wallet.update({})
    invocation.terminal.out(wallet.deviceDid)
  },
})
