import { OperatorError } from '../../base/operator-error.ts'
import { Misuse } from '../command.ts'
import { accountCommand, nameOf } from './operator-accounts.ts'

export const accountDeleteCommand = accountCommand({
  summary: 'Delete an account and all its data permanently.',
  details: 'Asks you to confirm by typing its handle, unless --yes is given.',
  options: { yes: { doc: 'Do not ask for confirmation.' } },
  async run({ terminal, server, account, flags }) {
    const { did, handle } = account
    const proof = handle ?? did
    if (!flags.has('yes')) {
      if (!terminal.isInteractive) throw new Misuse('there is no terminal to confirm at: add --yes')
      const typed = await terminal.ask(`${nameOf(account)} will be deleted permanently.\nType ${proof} to continue: `)
      if (typed.trim().toLowerCase() !== proof.toLowerCase())
        throw new OperatorError('not confirmed; nothing was deleted')
    }
    await server.post('/xrpc/com.atproto.admin.deleteAccount', { did })
    return { value: { did, handle }, text: `${nameOf(account)} is deleted.` }
  },
})
