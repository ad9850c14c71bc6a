/** The archive of an account for operators: for people who can no longer sign in, or ask for their data in writing. */
import { route } from '../../../http/endpoint.ts'
import { archiveOfAccount, importArchive } from '../../data/account-archives/account-archives.ts'
import { actorOf, namedAccount, operator, recordAudit } from '../operators/operators.ts'

export const accountArchiveRoutes = [
  route('GET', '/v1/admin/accounts/:did/archive', {
    auth: operator('repairAccounts'),
    long: true,
    async handler(call) {
      const { ctx, caller, path } = call
      const { did } = await namedAccount(ctx.db, path)
      const actor = actorOf(caller)
      await ctx.db.transaction((tx) => recordAudit(call, tx, { actor, action: 'account_exported', subject: did }))
      return archiveOfAccount(call, did, actor)
    },
  }),
  route('POST', '/v1/admin/accounts/:did/archive', {
    auth: operator('master', { takesBytes: true }),
    long: true,
    async handler(call) {
      const { ctx, caller, path } = call
      const { did } = await namedAccount(ctx.db, path)
      const entry = { actor: actorOf(caller), action: 'account_imported', subject: did } as const
      // Record it first, because an import that fails may have stored a part.
      await ctx.db.transaction((tx) => recordAudit(call, tx, entry))
      return importArchive(call, did)
    },
  }),
]
