/** Account repairs by an operator: replace the email address, reset a forgotten password, revoke stolen credentials. */
import { Type } from '@sinclair/typebox'
import { route } from '../../../http/endpoint.ts'
import { invalidRequest } from '../../../http/errors.ts'
import { readJson } from '../../../http/json-input.ts'
import { endAccess } from '../../../http/hooks.ts'
import { announceIn } from '../../identity/account-events/account-events.ts'
import { replaceEmail } from '../../identity/account-changes/account-changes.ts'
import { CODE_TTL_SECS, issueCode, mailCode } from '../../identity/mails/mails.ts'
import { parseEmailAddress } from '../../identity/addresses/addresses.ts'
import type { Tx } from '../../../platform/database/database.ts'
import { resetFactors } from '../../access/factors/factors.ts'
import { actorOf, namedAccount, operator, recordAudit, requireStanding } from '../operators/operators.ts'

const noPassword = () => invalidRequest('The account has no password to reset')

export const accountRepairRoutes = [
  route('POST', '/v1/admin/accounts/:did/email', {
    auth: operator('repairAccounts'),
    async handler(call) {
      const { ctx, caller, path, body } = call
      const { email } = await readJson(body, Type.Object({ email: Type.String() }))
      const { did } = await namedAccount(ctx.db, path)
      const permits = async (tx: Tx) => {
        await recordAudit(call, tx, { actor: actorOf(caller), action: 'email_updated', subject: did })
        return null
      }
      await replaceEmail(call, did, email.trim(), permits, actorOf(caller))
      return { did, email: parseEmailAddress(email.trim()), emailConfirmed: false }
    },
  }),

  // The only operator response that contains a secret: the code that the email would have carried.
  route('POST', '/v1/admin/accounts/:did/reset-token', {
    auth: operator('repairAccounts'),
    async handler(call) {
      const { ctx, caller, path } = call
      const { did, hasPassword } = await namedAccount(ctx.db, path)
      if (!hasPassword) throw noPassword()
      const token = await ctx.db.transaction(async (tx) => {
        await recordAudit(call, tx, { actor: actorOf(caller), action: 'reset_token_issued', subject: did })
        await announceIn(tx, call, 'resetCodeMade', did, { actor: actorOf(caller) })
        return issueCode(ctx, tx, did, 'reset_password')
      })
      return { did, token, expiresIn: CODE_TTL_SECS }
    },
  }),

  route('POST', '/v1/admin/accounts/:did/reset-mail', {
    auth: operator('mail'),
    async handler(call) {
      const { ctx, caller, path } = call
      const { did, hasPassword } = await namedAccount(ctx.db, path)
      if (!hasPassword) throw noPassword()
      const actor = actorOf(caller)
      const record = (tx: Tx) => recordAudit(call, tx, { actor, action: 'reset_token_issued', subject: did })
      const told = { at: ctx.clock.now(), origin: null, actor }
      await mailCode(call, did, 'reset_password', told, { causedBy: 'operator', record })
      return { did, expiresIn: CODE_TTL_SECS }
    },
  }),

  route('POST', '/v1/admin/accounts/:did/reset-factors', {
    auth: operator('repairAccounts'),
    async handler(call) {
      const { ctx, caller, path } = call
      const account = await namedAccount(ctx.db, path)
      const actor = actorOf(caller)
      const hadFactors = await ctx.db.transaction(async (tx) => {
        await recordAudit(call, tx, { actor, action: 'factors_reset', subject: account.did })
        return resetFactors(call, tx, account, actor)
      })
      return { did: account.did, hadFactors }
    },
  }),

  route('POST', '/v1/admin/accounts/:did/revoke-credentials', {
    auth: operator('endAccess'),
    async handler(call) {
      const { ctx, caller, path } = call
      const { did } = await namedAccount(ctx.db, path)
      const entry = { actor: actorOf(caller), action: 'credentials_revoked', subject: did } as const
      return ctx.db.transaction(async (tx) => {
        await requireStanding(call, tx, entry)
        const ended = await endAccess(ctx, tx, did, 'revoked')
        const revoked = {
          sessionsRevoked: ended.sessions ?? 0,
          appPasswordsRevoked: ended.appPasswords ?? 0,
          oauthTokensRevoked: ended.oauthTokens ?? 0,
          oauthCodesRevoked: ended.oauthCodes ?? 0,
          agentRegistrationsRevoked: ended.agentRegistrations ?? 0,
          delegationsRevoked: ended.delegations ?? 0,
          transferDeviceTokensRevoked: ended.transferDeviceTokens ?? 0,
          pushDevicesRevoked: ended.pushDevices ?? 0,
        }
        if (Object.values(revoked).some((count) => count > 0)) {
          await recordAudit(call, tx, { ...entry, detail: JSON.stringify(revoked), isDone: true })
          await announceIn(tx, call, 'accessEnded', did, { actor: entry.actor })
        }
        return revoked
      })
    },
  }),
]
