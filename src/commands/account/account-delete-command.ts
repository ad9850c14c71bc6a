import { confirm, yesOption } from '../prompts.ts'
import { accountCommand, nameOf } from './operator-accounts.ts'

export const accountDeleteCommand = accountCommand({
  summary: 'Delete an account and all its data permanently.',
  details: 'Asks you to confirm by typing its handle, unless --yes is given.',
  options: yesOption,
  async run(invocation) {
    const { server, account } = invocation
    const { did, handle } = account
    const proof = handle ?? did
    await confirm(invocation, `${nameOf(account)} will be deleted permanently.\nType ${proof} to continue: `, proof)
    await server.post('/xrpc/com.atproto.admin.deleteAccount', { did })
    return { value: { did, handle }, text: `${nameOf(account)} is deleted.` }
  },
})
