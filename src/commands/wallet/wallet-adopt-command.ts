import { OperatorError } from '../../base/operator-error.ts'
import { facts } from '../report.ts'
import { handOutPaper, openWallet, walletCommand, warnOfDeposit } from './wallet-command.ts'

export const walletAdoptCommand = walletCommand({
  summary: 'Manage an account that lists the key of this wallet.',
  parameters: ['<account>'],
  details: `For an account created in the browser with the key that "holdfast wallet key" prints. Adds a recovery key, and splits
it into shares as "holdfast wallet create" does.`,
  async run(invocation) {
    const {
      terminal,
      positionals: [account = ''],
    } = invocation
    const { adopt } = await import('../../wallet/wallet-creation.ts')
    const wallet = await openWallet(invocation)
    if (wallet.contents.did !== null)
      throw new OperatorError(`this wallet already holds ${wallet.contents.did}; name another --file`)
    const fault = await adopt(wallet, account)
    if (fault !== null) warnOfDeposit(terminal, fault)
    const { handle, did, server } = wallet.contents
    terminal.out(facts({ handle, did, server, 'device key': wallet.deviceDid }))
    await handOutPaper(invocation, wallet)
  },
})
