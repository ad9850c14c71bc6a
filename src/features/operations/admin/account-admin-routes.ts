/** Account methods of com.atproto.admin.*: reading accounts, repairing them and deleting them. */
import { createHash } from 'node:crypto'
import { procedure, query } from '../../../http/endpoint.ts'
import { invalidRequest, Refusal } from '../../../http/errors.ts'
import { didCursor, nextCursor } from '../../../http/paged-list.ts'
import type { Context } from '../../../platform/context.ts'
import type { Reader, Tx } from '../../../platform/database/database.ts'
import { INVALID_HANDLE, wireTime, type Did } from '../../../protocol/identifiers.ts'
import { deleteAccount, replaceEmail, setPassword } from '../../identity/account-changes/account-changes.ts'
import { accountAt, accountOf, accountsByEmail, type Account } from '../../identity/accounts/accounts.ts'
import { addressOf, sendMail } from '../../identity/mails/mails.ts'
import { admin, moderator } from '../../access/auth/auth.ts'
import { changeHandle } from '../../identity/handles/handles.ts'
import { codeView, codeViewsOf, findCodeUsedBy } from '../../identity/invites/invites.ts'
import { operatedBy, recordAudit } from '../operators/operators.ts'

const DEFAULT_SUBJECT = 'Message via your PDS'

const accountNotFound = () => new Refusal(400, 'NotFound', 'Account not found')

async function view(reader: Reader, account: Account) {
  const { did, handle, email, createdAt, emailConfirmedAt, deactivatedAt, invitesDisabled } = account
  const invitedBy = await findCodeUsedBy(reader, did)
  return {
    did,
    handle: handle ?? INVALID_HANDLE,
    indexedAt: wireTime(createdAt),
    ...(email === null ? {} : { email }),
    ...(emailConfirmedAt === null ? {} : { emailConfirmedAt: wireTime(emailConfirmedAt) }),
    ...(deactivatedAt === null ? {} : { deactivatedAt: wireTime(deactivatedAt) }),
    ...(invitedBy ? { invitedBy: codeView(invitedBy) } : {}),
    invites: await codeViewsOf(reader, did),
    invitesDisabled,
  }
}

async function views(reader: Reader, accounts: readonly Account[]) {
  const made = []
  for (const account of accounts) made.push(await view(reader, account))
  return made
}

async function existingAccount({ db }: Context, did: Did): Promise<Account> {
  const account = await accountOf(db, did)
  if (!account) throw accountNotFound()
  return account
}

export const accountAdminRoutes = [
  query('com.atproto.admin.getAccountInfo', {
    auth: moderator,
    handler: async ({ ctx, params }) => view(ctx.db, await existingAccount(ctx, params.did)),
  }),
  query('com.atproto.admin.getAccountInfos', {
    auth: moderator,
    async handler({ ctx, params: { dids } }) {
      const accounts = await Promise.all([...new Set(dids)].map((did) => accountOf(ctx.db, did)))
      return {
        infos: await views(
          ctx.db,
          accounts.filter((account) => account !== null),
        ),
      }
    },
  }),
  query('com.atproto.admin.searchAccounts', {
    auth: moderator,
    async handler({ ctx, params: { email = '', limit, cursor } }) {
      const after = cursor === undefined ? null : didCursor.read(cursor)
      const accounts = await accountsByEmail(ctx.db, email, after, limit)
      return { accounts: await views(ctx.db, accounts), cursor: nextCursor(didCursor, accounts, limit) }
    },
  }),
  procedure('com.atproto.admin.sendEmail', {
    auth: moderator,
    async handler(call) {
      const { ctx, caller, input } = call
      const { recipientDid, content, subject = DEFAULT_SUBJECT } = input
      const account = await accountOf(ctx.db, recipientDid)
      if (!account) throw invalidRequest('Recipient not found')
      // No mail provider would accept it.
      if (/[\r\n]/.test(subject)) throw invalidRequest('The subject must be one line')
      const mail = { to: addressOf(account), subject, text: content }
      // While a message waits to be sent, sending the same text again does not add a second one.
      const key = `operator ${recipientDid} ${createHash('sha256').update(subject).update('\n').update(content).digest('hex')}`
      const { outcome, refusal } = await sendMail(ctx, async (tx) => {
        await recordAudit(call, tx, { actor: caller.actor, action: 'email_sent', subject: recipientDid })
        return { key, did: account.did, what: 'operator', causedBy: 'operator', mail }
      })
      if (refusal !== null) throw refusal
      // `sent` is true even without a mail provider, as in the reference.
      return { sent: true, ...(outcome === 'logged' && { logged: true }) }
    },
  }),
  procedure('com.atproto.admin.updateAccountEmail', {
    auth: admin,
    async handler(call) {
      const { ctx, caller, input } = call
      const { account: identifier, email } = input
      const account = await accountAt(ctx.db, identifier)
      if (!account) throw invalidRequest(`Account does not exist: ${identifier}`)
      const permits = async (tx: Tx) => {
        await recordAudit(call, tx, { actor: caller.actor, action: 'email_updated', subject: account.did })
        return null
      }
      await replaceEmail(call, account.did, email, permits, caller.actor)
    },
  }),
  procedure('com.atproto.admin.updateAccountHandle', {
    auth: admin,
    async handler(call) {
      const { caller, input } = call
      const { did, handle } = input
      const operated = operatedBy(call, { actor: caller.actor, action: 'handle_updated', subject: did })
      await changeHandle(call, did, handle, { allowReserved: true, operated })
    },
  }),
  procedure('com.atproto.admin.updateAccountPassword', {
    auth: admin,
    async handler(call) {
      const { ctx, caller, input } = call
      const { did, password } = input
      await existingAccount(ctx, did)
      const operated = operatedBy(call, { actor: caller.actor, action: 'password_updated', subject: did })
      await setPassword(call, did, password, { operated })
    },
  }),
  procedure('com.atproto.admin.deleteAccount', {
    auth: admin,
    async handler(call) {
      const { caller, input } = call
      const { did } = input
      await deleteAccount(call, did, operatedBy(call, { actor: caller.actor, action: 'account_deleted', subject: did }))
    },
  }),
]
