/**
 * What the commands of a wallet share: the file and its passphrase, questions, and shares on paper. The wallet itself
 * is loaded on use.
 */
import type { Wallet } from '../../wallet/wallet.ts'
import { OperatorError } from '../../base/operator-error.ts'
import { type Command, type Invocation, type Option, type Terminal } from '../command.ts'
import { wanted } from '../prompts.ts'
import {
  passphraseOf,
  passphraseVariable,
  sealedFileCommand,
  sealedFilePath,
  workFactorOf,
  type SealedFileKind,
} from '../sealed-file-command.ts'

const VARIABLES = 'HOLDFAST_WALLET'

const walletFile: SealedFileKind = {
  fileName: 'wallet.age',
  variables: VARIABLES,
  options: { file: { value: 'FILE', doc: 'Path of the wallet. Default: holdfast/wallet.age in your data folder.' } },
  howItOpens: `The wallet is one file, encrypted with a passphrase (prompted for, or taken from ${passphraseVariable({ variables: VARIABLES })}).`,
}

export const newWalletOptions = {
  server: { value: 'URL', doc: 'The server that hosts the account.' },
  directory: {
    value: 'URL',
    doc: 'The PLC directory. Default: https://plc.directory, or the directory of a development server.',
  },
} as const satisfies Record<string, Option>

/** A command that opens its wallet itself, because the wallet may not exist yet. */
export const walletCommand = sealedFileCommand(walletFile)

interface IdentityCommand extends Omit<Command, 'run'> {
  /** The wallet has an identity, and no operation is half done. */
  run(invocation: Invocation & { wallet: Wallet }): Promise<void>
}

/** A command for a wallet with an identity. It first finishes an operation that an earlier command began. */
export const identityCommand = ({ run, ...command }: IdentityCommand): Command =>
  walletCommand({
    ...command,
    async run(invocation) {
      const wallet = await openWallet(invocation)
      await requireSettled(invocation, wallet)
      await run({ ...invocation, wallet })
      // Programs read what these options print.
      if (!invocation.flags.has('json') && !invocation.flags.has('print')) await handOutPaper(invocation, wallet)
    },
  })

const pendingSteps = {
  rekeying: 'new keys and shares',
  deposit: 'the share of the server',
  rotation: 'a new key for the repository',
}

/** The shares of the wallet and of its owner are in force even if the server does not take its share. */
export const warnOfDeposit = (terminal: Terminal, fault: OperatorError): void =>
  terminal.err(`warning: could not give the server its recovery share; the next command will retry: ${fault.message}`)

/** Finish an operation that an earlier command began. Throws OperatorError if only its own command can finish it. */
export async function requireSettled({ terminal }: Pick<Invocation, 'terminal'>, wallet: Wallet): Promise<void> {
  const { did, unfinished } = wallet.contents
  if (unfinished?.what === 'creation')
    throw new OperatorError('the account is not created yet: run "holdfast wallet create" again')
  if (unfinished?.what === 'recovery')
    throw new OperatorError('the identity is not recovered yet: run "holdfast wallet recover" again')
  if (unfinished?.what === 'arrival')
    throw new OperatorError('the other device has not handed over yet: run "holdfast wallet transfer" again')
  if (unfinished?.what === 'hand-over' && unfinished.operation !== null)
    throw new OperatorError('the identity is not handed over yet: run "holdfast wallet transfer --to KEY" again')
  if (unfinished?.what === 'move')
    throw new OperatorError('the account has not moved yet: run "holdfast wallet move" again')
  if (did === null)
    throw new OperatorError('this wallet has no identity yet: run "holdfast wallet create" to create one')
  const { finishPending } = await import('../../wallet/wallet-operations.ts')
  const { what, fault } = await finishPending(wallet)
  if (fault !== null) warnOfDeposit(terminal, fault)
  else if (what !== null) terminal.err(`finished first: ${pendingSteps[what]}`)
}

export const walletPath = (invocation: Invocation): Promise<string> => sealedFilePath(walletFile, invocation)

/** Open the wallet of the options. Throws OperatorError if there is none, or the passphrase does not open it. */
export async function openWallet(invocation: Invocation): Promise<Wallet> {
  const { terminal } = invocation
  const [{ WalletFile }, { Wallet }, path] = await Promise.all([
    import('../../wallet/wallet-file.ts'),
    import('../../wallet/wallet.ts'),
    walletPath(invocation),
  ])
  if (!WalletFile.exists(path))
    throw new OperatorError(`there is no wallet at ${path}: run "holdfast wallet create" to create one`)
  const { file, contents } = await WalletFile.open(
    path,
    await passphraseFor(terminal, { isNew: false }),
    await workFactor(terminal),
  )
  return new Wallet(file, contents, terminal.now)
}

/** Open the existing wallet. Throws OperatorError if the options name another server than the wallet's. */
async function openSame(invocation: Invocation): Promise<Wallet> {
  const { serverOrigin } = await import('../../base/server-request.ts')
  const wallet = await openWallet(invocation)
  const { server } = invocation.options
  if (server !== undefined && serverOrigin(server) !== wallet.contents.server)
    throw new OperatorError(`this wallet is for ${wallet.contents.server}; name another --file`)
  return wallet
}

/**
 * Open the wallet that the options name, or make one with a device key for the server that they name. Writes nothing
 * yet.
 */
export async function openOrMakeWallet(invocation: Invocation): Promise<Wallet> {
  const { terminal, options } = invocation
  const [{ WalletFile }, { Wallet, freshContents }, { serverOrigin }, { directoryOf }, path] = await Promise.all([
    import('../../wallet/wallet-file.ts'),
    import('../../wallet/wallet.ts'),
    import('../../base/server-request.ts'),
    import('../../wallet/wallet-directory.ts'),
    walletPath(invocation),
  ])
  if (WalletFile.exists(path)) return openSame(invocation)
  const server = serverOrigin(await wanted(invocation, 'server', 'Server URL'))
  const { directory } = options
  const contents = freshContents(server, directory === undefined ? directoryOf(server) : serverOrigin(directory))
  const passphrase = await passphraseFor(terminal, { isNew: true })
  return new Wallet(WalletFile.fresh(path, passphrase, await workFactor(terminal)), contents, terminal.now)
}

export const workFactor = (terminal: Terminal): Promise<number> => workFactorOf(walletFile, terminal)

export const passphraseFor = (terminal: Terminal, how: { isNew: boolean; name?: string }): Promise<string> =>
  passphraseOf(walletFile, terminal, how)

const WORDS_IN_A_LINE = 7

/** Print the share for paper that the owner has not seen yet, if there is one, and forget it. */
export async function handOutPaper({ terminal }: Invocation, wallet: Wallet): Promise<void> {
  const { paperShare } = wallet.contents
  if (paperShare === null) return
  const [{ encodeQR }, { parseShare }, { shareWords }] = await Promise.all([
    import('qr'),
    import('../../protocol/escrow-share.ts'),
    import('../../wallet/share-words.ts'),
  ])
  const outcome = parseShare(paperShare)
  if (!outcome.ok) throw new Error('the recovery share in the wallet is damaged')
  const words = shareWords(outcome.share.bytes).split(' ')
  const lines = words.flatMap((_, i) =>
    i % WORDS_IN_A_LINE === 0 ? [`  ${words.slice(i, i + WORDS_IN_A_LINE).join(' ')}`] : [],
  )
  terminal.out(`\nYour recovery share. Write it down or print it, and keep it where you will find it without this device:

${lines.join('\n')}

The same share as text, and as a QR code:

  ${paperShare}

${encodeQR(paperShare, 'ascii')}
Together with the server's share, or the one in this wallet, it restores your identity. On its own it is useless.
It is not shown again. "holdfast wallet escrow --renew" makes new shares.`)
  if (terminal.isInteractive) await terminal.ask('Press Enter once you have written it down: ')
  await wallet.update({ paperShare: null })
}
