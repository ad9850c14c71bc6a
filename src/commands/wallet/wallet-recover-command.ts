import { OperatorError } from '../../base/operator-error.ts'
import type { EscrowShare } from '../../protocol/escrow-share.ts'
import { type Invocation, Misuse } from '../command.ts'
import type { Wallet } from '../../wallet/wallet.ts'
import { wanted } from '../prompts.ts'
import { handOutPaper, newWalletOptions, openOrMakeWallet, walletCommand, warnOfDeposit } from './wallet-command.ts'

export const walletRecoverCommand = walletCommand({
  summary: 'Recover an identity whose device is lost.',
  parameters: ['[account]'],
  details: `Requires two of the three shares. Usually these are yours on paper and the server's: the server mails you a code, and
releases its share after a delay. Then run the command again to continue. With --offline you enter both shares, and the
server's share is not needed.

Type a share as words or as text; "-" reads it from standard input, one share per line. This wallet's key then replaces
the lost one, and all shares are replaced.`,
  options: {
    code: { value: 'CODE', doc: 'The mailed code.' },
    share: { value: 'SHARE', doc: 'Your share.' },
    'second-share': { value: 'SHARE', doc: 'With --offline: the other share.' },
    offline: { doc: 'Type in both shares.' },
    again: { doc: 'Start over with a new code.' },
    ...newWalletOptions,
  },
  async run(invocation) {
    const { terminal } = invocation
    const wallet = await openOrMakeWallet(invocation)
    const outcome = await takeOver(invocation, wallet)
    if (outcome === null) return
    if (outcome.fault !== null) warnOfDeposit(terminal, outcome.fault)
    terminal.out(
      `${wallet.contents.handle ?? wallet.did} is yours again. The keys of lost devices are no longer valid.`,
    )
    await handOutPaper(invocation, wallet)
  },
})

/** Returns null if it is too early for the server's share, else why the server refused its new share, if it did. */
async function takeOver(invocation: Invocation, wallet: Wallet): Promise<{ fault: OperatorError | null } | null> {
  if (wallet.contents.unfinished?.what === 'rekeying') {
    const { finishPending } = await import('../../wallet/wallet-operations.ts')
    return finishPending(wallet)
  }
  const byMail = !invocation.flags.has('offline')
  const isNew = await begin(invocation, wallet, byMail)
  const released = byMail ? await shareOfServer(invocation, wallet, isNew) : null
  if (byMail && released === null) return null
  const { recover } = await import('../../wallet/wallet-recovery.ts')
  const own = await typedShare(invocation, 'share', 'Your share, as words or as text')
  return {
    fault: await recover(wallet, own, released ?? (await typedShare(invocation, 'second-share', 'The other share'))),
  }
}

/** Returns the share that the server releases; null if it does not release it yet. */
async function shareOfServer(
  { terminal, ...rest }: Invocation,
  wallet: Wallet,
  isNew: boolean,
): Promise<EscrowShare | null> {
  const { askForShare, recoveryOf, releasedShare } = await import('../../wallet/wallet-recovery.ts')
  const released = releasedShare(wallet)
  if (released !== null) return released
  const { code } = rest.options
  if (isNew && code === undefined && !terminal.isInteractive) {
    terminal.out('If the account exists, a code was mailed to its address: run this again with --code')
    return null
  }
  const isOpen = recoveryOf(wallet).availableAt !== null
  const otp =
    isOpen && code === undefined ? null : await wanted({ terminal, ...rest }, 'code', 'The code that was mailed to you')
  const outcome = await askForShare(wallet, otp)
  if (outcome.state === 'released') return releasedShare(wallet)
  terminal.out(`The server releases its share at ${outcome.availableAt}. Then run "holdfast wallet recover" again.`)
  return null
}

/** Begin a recovery unless one is under way. Returns whether it began. */
async function begin({ flags, positionals: [account] }: Invocation, wallet: Wallet, byMail: boolean): Promise<boolean> {
  const { beginRecovery } = await import('../../wallet/wallet-recovery.ts')
  const { did, unfinished } = wallet.contents
  const underWay = unfinished?.what === 'recovery' ? unfinished.did : null
  if (underWay === null && did !== null) throw new OperatorError(`this wallet holds ${did}; name another --file`)
  if (underWay !== null && !flags.has('again')) return false
  const name = account ?? underWay
  if (name === null) throw new Misuse('the handle or the DID of the identity is required')
  await beginRecovery(wallet, name, { byMail })
  return true
}

async function typedShare(invocation: Invocation, option: string, question: string): Promise<EscrowShare> {
  const { readTypedShare } = await import('../../wallet/share-words.ts')
  const outcome = readTypedShare(await typed(invocation, option, question))
  if (outcome.ok) return outcome.share
  if (outcome.fault === 'word') throw new OperatorError(`"${outcome.word}" is not a word of a share`)
  throw new OperatorError(shareFaults[outcome.fault])
}

/** The value of the option, the next line of standard input if it is a dash, or the answer to the prompt. */
async function typed(invocation: Invocation, option: string, question: string): Promise<string> {
  if (invocation.options[option] !== '-') return wanted(invocation, option, question)
  const line = await invocation.terminal.nextLine()
  if (line === null) throw new Misuse('there is no share on standard input')
  return line
}

const shareFaults = {
  format: 'this share is incomplete: a share has 42 words, or 68 characters',
  version: 'this version does not support this kind of share',
  checksum: 'there is a mistake in this share: a word or a character is not the one that was printed',
  index: 'this share is damaged',
} as const
