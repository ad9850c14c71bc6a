import { adminCommand } from '../admin-command.ts'
import { describedServer, findAccount, fullHandle, NAMED_BY } from './operator-accounts.ts'

export const accountChangeHandleCommand = adminCommand({
  summary: 'Give an account another handle.',
  parameters: ['<account>', '<handle>'],
  details: `${NAMED_BY}
The same applies to the new handle. A handle under another domain must already resolve to the account.`,
  async run({ server, positionals: [name = '', given = ''] }) {
    const { did } = await findAccount(server, name)
    const handle = fullHandle(given.replace(/^@/, ''), (await describedServer(server)).availableUserDomains)
    await server.post('/xrpc/com.atproto.admin.updateAccountHandle', { did, handle })
    return { value: { did, handle }, text: `${did} has the handle ${handle}.` }
  },
})
