import { accountCommand, describedServer, fullHandle } from './operator-accounts.ts'

export const accountChangeHandleCommand = accountCommand({
  summary: 'Give an account another handle.',
  parameters: ['<handle>'],
  details: 'The same applies to the new handle. A handle under another domain must already resolve to the account.',
  async run({ server, account: { did }, positionals: [given = ''] }) {
    const handle = fullHandle(given.replace(/^@/, ''), (await describedServer(server)).availableUserDomains)
    await server.post('/xrpc/com.atproto.admin.updateAccountHandle', { did, handle })
    return { value: { did, handle }, text: `${did} has the handle ${handle}.` }
  },
})
