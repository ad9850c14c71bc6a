/** com.atproto.server endpoints for the account's email address. */
import { procedure } from '../../../http/endpoint.ts'
import { invalidRequest } from '../../../http/errors.ts'
import type { Permissions } from '../../../protocol/scopes.ts'
import { mailsOf, presentAccount, requestCode } from '../mails/mails.ts'
import { withinRefusedAddresses } from '../addresses/addresses.ts'
import { setEmailFactor } from '../../access/factors/factors.ts'
import { access } from '../../access/auth/auth.ts'
import { changeEmail, confirmEmail, requestEmailUpdate } from './email-changes.ts'

const managesEmail = (permissions: Permissions) => permissions.assertAccount({ attr: 'email', action: 'manage' })
const onlyInTheAccountManager = {
  refuse: 'Use the account manager interface to update email address associated with an account',
}

export const emailRoutes = [
  procedure('com.atproto.server.requestEmailConfirmation', {
    auth: access({ grants: managesEmail, refusesTakendown: true }),
    limit: mailsOf('confirm_email'),
    handler: (call) => requestCode(call, call.caller.did, 'confirm_email'),
  }),
  procedure('com.atproto.server.confirmEmail', {
    auth: access({ grants: managesEmail, refusesTakendown: true }),
    handler: (call) => confirmEmail(call, call.caller.did, call.input.email, call.input.token),
  }),
  procedure('com.atproto.server.requestEmailUpdate', {
    auth: access({ sessions: 'owner', grants: onlyInTheAccountManager, refusesTakendown: true }),
    limit: mailsOf('update_email'),
    handler: async (call) => ({ tokenRequired: await requestEmailUpdate(call, call.caller.did) }),
  }),
  procedure('com.atproto.server.updateEmail', {
    auth: access({ sessions: 'owner', grants: onlyInTheAccountManager, refusesTakendown: true }),
    async handler(call) {
      const { did } = call.caller
      const { email, token, emailAuthFactor } = call.input
      // To switch the sign-in code on or off, a client sends the address that the account already has.
      const { email: present } = await presentAccount(call.ctx.db, did)
      if (emailAuthFactor !== undefined && email.toLowerCase() === present)
        return setEmailFactor(call, did, emailAuthFactor, { code: token })
      if (emailAuthFactor === true) throw invalidRequest('Confirm the new email address first')
      await withinRefusedAddresses(call, () => changeEmail(call, did, email, token))
    },
  }),
]
