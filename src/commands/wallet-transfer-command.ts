import { OperatorError } from '../base/operator-error.ts'
import type { Invocation } from './command.ts'
import type { Wallet } from '../wallet/wallet.ts'
import { handOutPaper, newWalletOptions, openOrMakeWallet, openWallet, walletCommand, wanted, warnOfDeposit } from './wallet-command.ts'

export const walletTransferCommand = walletCommand({
  name: 'wallet transfer',
  summary: 'Move the identity to another device.',
  details: `1. Old device: "holdfast wallet transfer" prints a code.
2. New device: the command that was printed makes a key, and prints it.
3. Old device: "holdfast wallet transfer --to KEY" signs that key into the identity, in the place of its own. All sessions end.
4. New device: "holdfast wallet transfer" finishes, and prints a new recovery share. The old ones are worth nothing then.`,
  options: {
    accept: { value: 'CODE', doc: 'On the new device: the code that the old one printed.' },
    account: { value: 'HANDLE', doc: 'On the new device: the handle or the DID of the account.' },
    'recovery-key': { value: 'KEY', doc: 'On the new device: the recovery key that a new one will replace.' },
    to: { value: 'KEY', doc: 'On the old device: the key that the new one printed.' },
    ...newWalletOptions,
  },
  async run(invocation) {
    if (typeof invocation.options['accept'] === 'string') return accept(invocation, invocation.options['accept'])
    const wallet = await openWallet(invocation)
    const { unfinished } = wallet.contents
    if (unfinished?.what === 'arrival' || unfinished?.what === 'rekeying') return arrive(invocation, wallet)
    if (unfinished !== null && unfinished.what !== 'hand-over') throw new OperatorError('another step is in progress in this wallet')
    if (typeof invocation.options['to'] === 'string') return handOver(invocation, wallet, invocation.options['to'])
    await begin(invocation, wallet)
  },
})

async function begin(invocation: Invocation, wallet: Wallet): Promise<void> {
  const { beginHandOver } = await import('../wallet/wallet-transfer.ts')
  const { code, expiresAt } = await beginHandOver(wallet)
  const { handle, did, server, recoveryKey } = wallet.contents
  const replaced = recoveryKey === null ? '' : ` --recovery-key ${recoveryKey}`
  invocation.terminal.out(`The code is ${code}, until ${expiresAt}. On the new device:

  holdfast wallet transfer --accept ${code} --account ${handle ?? did} --server ${server}${replaced}

Then come back with the key that it prints: holdfast wallet transfer --to KEY`)
}

async function accept(invocation: Invocation, code: string): Promise<void> {
  const { acceptTransfer } = await import('../wallet/wallet-transfer.ts')
  const wallet = await openOrMakeWallet(invocation)
  if (wallet.contents.did !== null) throw new OperatorError('this wallet is in use; name another --file')
  const recoveryKey = invocation.options['recovery-key']
  await acceptTransfer(wallet, {
    account: await wanted(invocation, 'account', 'Handle of the account: '),
    transferCode: code.trim().toUpperCase(),
    recoveryKey: typeof recoveryKey === 'string' ? recoveryKey.trim() : null,
  })
  invocation.terminal.out(`Accepted. On the old device:

  holdfast wallet transfer --to ${wallet.deviceDid}

Then finish here: holdfast wallet transfer`)
}

async function handOver(invocation: Invocation, wallet: Wallet, key: string): Promise<void> {
  const { handOver: hand } = await import('../wallet/wallet-transfer.ts')
  await hand(wallet, key.trim())
  invocation.terminal.out(
    'Handed over. Finish on the new device: holdfast wallet transfer\nThis wallet opens nothing any more; its file can be deleted.',
  )
}

async function arrive(invocation: Invocation, wallet: Wallet): Promise<void> {
  const [{ arrive: finish }, { finishPending }] = await Promise.all([
    import('../wallet/wallet-transfer.ts'),
    import('../wallet/wallet-operations.ts'),
  ])
  const { unfinished } = wallet.contents
  const outcome = unfinished?.what === 'arrival' ? await finish(wallet, unfinished) : { arrived: true, ...(await finishPending(wallet)) }
  if (!outcome.arrived)
    throw new OperatorError(`the old device has not handed over yet. There: holdfast wallet transfer --to ${wallet.deviceDid}`)
  if (outcome.fault) warnOfDeposit(invocation.terminal, outcome.fault)
  invocation.terminal.out(`This wallet now holds ${wallet.contents.handle ?? wallet.did}.`)
  await handOutPaper(invocation, wallet)
}
