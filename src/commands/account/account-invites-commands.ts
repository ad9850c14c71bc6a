/** Whether an account may give invite codes away. */
import { adminCommand } from '../admin-command.ts'
import { findAccount, nameOf, NAMED_BY } from './operator-accounts.ts'

export const accountStopInvitesCommand = adminCommand({
  summary: 'Stop an account from inviting others.',
  parameters: ['<account>'],
  details: `${NAMED_BY}
Codes that the account earns from now on are disabled. Its present codes still work: "invite disable" disables one.`,
  async run({ server, positionals: [name = ''] }) {
    const account = await findAccount(server, name)
    await server.post('/xrpc/com.atproto.admin.disableAccountInvites', { account: account.did })
    return { value: { did: account.did, invitesDisabled: true }, text: `${nameOf(account)} can no longer invite.` }
  },
})

export const accountAllowInvitesCommand = adminCommand({
  summary: 'Let an account invite others again.',
  parameters: ['<account>'],
  details: NAMED_BY,
  async run({ server, positionals: [name = ''] }) {
    const account = await findAccount(server, name)
    await server.post('/xrpc/com.atproto.admin.enableAccountInvites', { account: account.did })
    return { value: { did: account.did, invitesDisabled: false }, text: `${nameOf(account)} can invite again.` }
  },
})
