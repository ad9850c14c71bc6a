import { OperatorError } from '../../base/operator-error.ts'
import type { Invocation } from '../command.ts'
import type { Wallet } from '../../wallet/wallet.ts'
import {
  handOutPaper,
  newWalletOptions,
  openOrMakeWallet,
  openWallet,
  requireSettled,
  walletCommand,
  warnOfDeposit,
} from './wallet-command.ts'

export const walletTransferCommand = walletCommand({
  summary: 'Move the identity to another device.',
  details: `1. Old device: "holdfast wallet transfer" prints a command.
2. New device: that command creates a key, and prints it.
3. Old device: "holdfast wallet transfer --to KEY" replaces its own key with that key, and ends all sessions.
4. New device: "holdfast wallet transfer" finishes, and prints a new recovery share. The old shares become useless.`,
  options: {
    join: { value: 'ACCOUNT', doc: 'On the new device: the handle or the DID of the account.' },
    code: { value: 'CODE', doc: 'On the new device: the code that the old one printed.' },
    'recovery-key': { value: 'KEY', doc: 'On the new device: the recovery key to replace.' },
    to: { value: 'KEY', doc: 'On the old device: the key that the new one printed.' },
    ...newWalletOptions,
  },
  async run(invocation) {
    const { join, to } = invocation.options
    if (join !== undefined) return joinWith(invocation, join)
    const wallet = await openWallet(invocation)
    const { unfinished } = wallet.contents
    if (unfinished?.what === 'arrival' || unfinished?.what === 'rekeying') return arrive(invocation, wallet)
    if (unfinished?.what !== 'hand-over') await requireSettled(invocation, wallet)
    if (to !== undefined) return handOver(invocation, wallet, to)
    await begin(invocation, wallet)
  },
})

async function begin({ terminal }: Invocation, wallet: Wallet): Promise<void> {
  const [{ beginHandOver }, { directoryOf }] = await Promise.all([
    import('../../wallet/wallet-transfer.ts'),
    import('../../wallet/wallet-directory.ts'),
  ])
  const begun = await beginHandOver(wallet)
  const { handle, did, server, directory, recoveryKey } = wallet.contents
  const words = ['--join', handle ?? did, '--server', server]
  if (directory !== directoryOf(server)) words.push('--directory', directory)
  if (begun !== null) words.push('--code', begun.code)
  if (recoveryKey !== null) words.push('--recovery-key', recoveryKey)
  const until = begun === null ? '' : ` until ${begun.expiresAt}`
  terminal.out(`On the new device${until}:

  holdfast wallet transfer ${words.join(' ')}

Then run here, with the key that it prints: holdfast wallet transfer --to KEY`)
  if (begun === null)
    terminal.err(
      "warning: this wallet has no session that the server accepts for a transfer: the account's open sessions will stay open",
    )
}

async function joinWith(invocation: Invocation, account: string): Promise<void> {
  const { joinTransfer } = await import('../../wallet/wallet-transfer.ts')
  const wallet = await openOrMakeWallet(invocation)
  if (wallet.contents.did !== null) throw new OperatorError('this wallet is in use; name another --file')
  const { code, 'recovery-key': recoveryKey } = invocation.options
  await joinTransfer(wallet, {
    account,
    code: code?.trim().toUpperCase() ?? null,
    recoveryKey: recoveryKey?.trim() ?? null,
  })
  invocation.terminal.out(`This device is ready. On the old one:

  holdfast wallet transfer --to ${wallet.deviceDid}

Then finish here: holdfast wallet transfer`)
}

async function handOver(invocation: Invocation, wallet: Wallet, key: string): Promise<void> {
  const { handOver: hand } = await import('../../wallet/wallet-transfer.ts')
  await hand(wallet, key.trim())
  invocation.terminal.out(
    'Handed over. Finish on the new device: holdfast wallet transfer\nThis wallet no longer has any keys; you can delete its file.',
  )
}

async function arrive(invocation: Invocation, wallet: Wallet): Promise<void> {
  const [{ arrive: finish }, { finishPending }] = await Promise.all([
    import('../../wallet/wallet-transfer.ts'),
    import('../../wallet/wallet-operations.ts'),
  ])
  const { unfinished } = wallet.contents
  const outcome =
    unfinished?.what === 'arrival'
      ? await finish(wallet, unfinished)
      : { arrived: true, ...(await finishPending(wallet)) }
  if (!outcome.arrived)
    throw new OperatorError(
      `the old device has not handed over yet. There: holdfast wallet transfer --to ${wallet.deviceDid}`,
    )
  if (outcome.fault) warnOfDeposit(invocation.terminal, outcome.fault)
  invocation.terminal.out(`This wallet now holds ${wallet.contents.handle ?? wallet.did}.`)
  await handOutPaper(invocation, wallet)
}
