import { OperatorError } from '../base/operator-error.ts'
import { Misuse } from './command.ts'
import { operated } from './operated.ts'
import { findAccount, nameOf, NAMED_BY } from './operator-accounts.ts'

export const accountDeleteCommand = operated({
  name: 'account delete',
  summary: 'Delete an account with everything in it, for good.',
  parameters: ['<account>'],
  details: `${NAMED_BY} Its handle has to be typed once more, unless --yes is given.`,
  options: { yes: { doc: 'Do not ask.' } },
  async run({ terminal, server, positionals: [name = ''], options }) {
    const account = await findAccount(server, name)
    const { did, handle } = account
    const proof = handle ?? did
    if (options['yes'] !== true) {
      if (!terminal.isInteractive) throw new Misuse('nobody can be asked here: add --yes')
      const typed = await terminal.ask(`${nameOf(account)} will be deleted for good.\nType ${proof} to go on: `)
      if (typed.trim().toLowerCase() !== proof.toLowerCase()) throw new OperatorError('not confirmed; nothing was deleted')
    }
    await server.post('/xrpc/com.atproto.admin.deleteAccount', { did })
    return { value: { did, handle }, text: `${nameOf(account)} is deleted.` }
  },
})
