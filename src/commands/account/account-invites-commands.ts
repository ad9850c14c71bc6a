/** Whether an account may give invite codes away. */
import { accountCommand, nameOf } from './operator-accounts.ts'

export const accountStopInvitesCommand = accountCommand({
  summary: 'Stop an account from inviting others.',
  details:
    'Codes that the account earns from now on are disabled. Its present codes still work: "invite disable" disables one.',
  async run({ server, account }) {
    await server.post('/xrpc/com.atproto.admin.disableAccountInvites', { account: account.did })
    return { value: { did: account.did, invitesDisabled: true }, text: `${nameOf(account)} can no longer invite.` }
  },
})

export const accountAllowInvitesCommand = accountCommand({
  summary: 'Let an account invite others again.',
  details: '',
  async run({ server, account }) {
    await server.post('/xrpc/com.atproto.admin.enableAccountInvites', { account: account.did })
    return { value: { did: account.did, invitesDisabled: false }, text: `${nameOf(account)} can invite again.` }
  },
})
