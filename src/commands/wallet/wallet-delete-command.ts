import { OperatorError } from '../../base/operator-error.ts'
import { chosenFlag, type Invocation, Misuse } from '../command.ts'
import type { Wallet } from '../../wallet/wallet.ts'
import { identityCommand, wanted } from './wallet-command.ts'

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
    yes: { doc: 'Do not ask for confirmation.' },
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
      await deleteAccount(wallet, await wanted(invocation, 'code', 'The code that was mailed to you: '))
      terminal.out('The account is deleted.')
    } else await confirmName(invocation, 'will be ended in the directory')
    if (part === 'keep-identity' || !wallet.did.startsWith('did:plc:')) return
    await endIdentity(wallet)
    terminal.out('The identity is ended. Keep the wallet for 72 hours if you may want it back.')
  },
})

/** Throws OperatorError unless `--yes` is given or the handle is typed. */
async function confirmName({ terminal, wallet, flags }: Invocation & { wallet: Wallet }, fate: string): Promise<void> {
  if (flags.has('yes')) return
  if (!terminal.isInteractive) throw new Misuse('there is no terminal to confirm at: add --yes')
  const { handle, did } = wallet.contents
  const name = handle ?? wallet.did
  const typed = await terminal.ask(`${name} (${did}) ${fate}.\nType ${name} to continue: `)
  if (typed.trim().toLowerCase() !== name.toLowerCase()) throw new OperatorError('not confirmed; nothing was deleted')
}
