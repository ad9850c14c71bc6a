import { OperatorError } from '../../base/operator-error.ts'
import { type Invocation, Misuse } from '../command.ts'
import { confirm, newPasswordIfWanted, wanted, yesOption } from '../prompts.ts'
import { handOutPaper, openWallet, requireSettled, walletCommand, warnOfDeposit } from './wallet-command.ts'
import type { Wallet } from '../../wallet/wallet.ts'

export const walletMoveCommand = walletCommand({
  summary: 'Move the account to another server.',
  parameters: ['[server]'],
  details: `Copies repository, blobs and preferences, names the new server in the identity, and deactivates the account at the old
server. If the move is interrupted, run the command again to continue. You can move back with the same wallet.`,
  options: {
    handle: { value: 'HANDLE', doc: 'The handle at the new server.' },
    email: { value: 'ADDRESS', doc: 'The email address to which the new server sends codes.' },
    code: { value: 'CODE', doc: 'An invite code of the new server.' },
    password: { doc: 'Give the account a password there. Prompts for it twice.' },
    'password-stdin': { doc: 'Read the password from standard input.' },
    ...yesOption,
  },
  async run(invocation) {
    const { terminal } = invocation
    const wallet = await openWallet(invocation)
    const { beginMove, finishMove } = await import('../../wallet/wallet-move.ts')
    if (wallet.contents.unfinished?.what !== 'move') {
      await requireSettled(invocation, wallet)
      await beginMove(wallet, await wishes(invocation, wallet))
    }
    const { lostBlobs, fault } = await finishMove(wallet)
    if (lostBlobs > 0) terminal.err(`warning: ${lostBlobs} blobs were missing at the old server`)
    if (fault !== null) warnOfDeposit(terminal, fault)
    terminal.out(`The account is now at ${wallet.server.url} as ${wallet.contents.handle}.`)
    await handOutPaper(invocation, wallet)
  },
})

async function wishes(invocation: Invocation, wallet: Wallet) {
  const { positionals, options } = invocation
  const [{ serverOrigin }, { parseHandle }] = await Promise.all([
    import('../../base/server-request.ts'),
    import('../../protocol/identifiers.ts'),
  ])
  if (positionals[0] === undefined) throw new Misuse('the URL of the new server is required')
  const to = serverOrigin(positionals[0])
  const typed = await wanted(invocation, 'handle', 'Handle at the new server')
  const handle = parseHandle(typed.replace(/^@/, ''))
  if (handle === null) throw new OperatorError(`${typed} is not a handle`)
  const email = await wanted(invocation, 'email', 'Email address')
  const password = await newPasswordIfWanted(invocation)
  await confirm(
    invocation,
    `${wallet.contents.handle ?? wallet.did} moves to ${to} as ${handle}. Type yes to continue: `,
  )
  return { to, handle, email, inviteCode: options['code']?.trim() ?? null, password }
}
