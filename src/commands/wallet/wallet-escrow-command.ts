import { OperatorError } from '../../base/operator-error.ts'
import { chosenFlag, Misuse } from '../command.ts'
import { identityCommand, warnOfDeposit } from './wallet-command.ts'

export const walletEscrowCommand = identityCommand({
  summary: 'Renew the recovery shares, or stop a recovery.',
  details: `Use --cancel if you get a mail about a recovery that you did not request. After --withdraw, the server has no share to
release; the share in the wallet and the one on paper still restore the identity.`,
  options: {
    renew: { doc: 'Create a new recovery key and new shares. The old shares become useless.' },
    cancel: { doc: 'Stop a recovery that is in progress.' },
    withdraw: { doc: 'Make the server delete its share.' },
  },
  async run({ terminal, wallet, flags }) {
    const [{ renewShares }, { cancelRelease, withdrawShare }] = await Promise.all([
      import('../../wallet/wallet-operations.ts'),
      import('../../wallet/wallet-recovery.ts'),
    ])
    const chosen = chosenFlag(flags, ['renew', 'cancel', 'withdraw'])
    if (chosen === undefined) throw new Misuse('one of --renew, --cancel and --withdraw is required')
    await wallet.server.need('escrow', 'keeping a share for recovery')
    const [work, said] = {
      renew: [renewShares, 'The recovery key and its shares have been replaced.'] as const,
      cancel: [cancelRelease, 'The recovery has been stopped.'] as const,
      withdraw: [withdrawShare, 'The server has deleted its share.'] as const,
    }[chosen]
    const fault = await work(wallet)
    if (fault instanceof OperatorError) warnOfDeposit(terminal, fault)
    terminal.out(said)
  },
})
