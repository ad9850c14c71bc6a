import { chosenFlag, type Invocation } from '../command.ts'
import type { Wallet } from '../../wallet/wallet.ts'
import { confirm, wanted, yesOption } from '../prompts.ts'
import { identityCommand } from './wallet-command.ts'

export const walletDeleteCommand = identityCommand({
  summary: 'Delete the account, and end its identity.',
  details: `Requires the key of this wallet and a code that is mailed to the address of the account. Asks you to confirm
by typing the handle, unless --yes is given. Without a terminal, run it once to request the code, and again with --code.

A did:plc is then tombstoned in the directory. For 72 hours a rotation key can undo this; after that, the DID is gone
for good. Use --keep-identity if the identity has an account elsewhere, and --only-identity if the account is already
deleted.`,
  options: {
    code: { value: 'CODE', doc: 'The mailed code.' },
    'keep-identity': { doc: 'Delete the account only.' },
    'only-identity': { doc: 'End the identity only.' },
    ...yesOption,
  },
  async run(invocation) {
    const { terminal, wallet, options, flags } = invocation
    const { deleteAccount, endIdentity, requestDeletion } = await import('../../wallet/wallet-account.ts')
    const part = chosenFlag(flags, ['keep-identity', 'only-identity'])
    if (part !== 'only-identity') {
      if (options['code'] === undefined) {
        await requestDeletion(wallet)
        if (!terminal.isInteractive) return terminal.out('A code was mailed: run this again with --code and --yes')
      }
      await confirmName(invocation, 'will be deleted permanently, with all its data')
      await deleteAccount(wallet, await wanted(invocation, 'code', 'The code that was mailed to you'))
      terminal.out('The account is deleted.')
    } else await confirmName(invocation, 'will be ended in the directory')
    if (part === 'keep-identity' || !wallet.did.startsWith('did:plc:')) return
    await endIdentity(wallet)
    terminal.out('The identity is ended. Keep the wallet for 72 hours if you may want it back.')
  },
})

/** Ask for the handle. Throws OperatorError if another text is typed. */
function confirmName(invocation: Invocation & { wallet: Wallet }, fate: string): Promise<void> {
  const { did, contents } = invocation.wallet
  const name = contents.handle ?? did
  return confirm(invocation, `${name} (${did}) ${fate}.\nType ${name} to continue: `, name)
}
