/** Activation, deactivation and deletion on the wire. */
import { procedure, query } from '../../http/endpoint.ts'
import { accountNotFound, accountOf, requestCode, statusOf } from '../accounts/accounts.ts'
import { access, fullAccess } from '../auth/auth.ts'
import { countBlobs } from '../blobs/blobs.ts'
import { repoTotals } from '../repo/repo.ts'
import { deleteOwnAccount } from './account-deletion.ts'
import { activateAccount, deactivateAccount } from './account-lifecycle.ts'
import { isDidFit } from './did-fitness.ts'

export const lifecycleRoutes = [
  query('com.atproto.server.checkAccountStatus', {
    auth: access({ grants: 'any' }),
    async handler({ ctx, caller: { did } }) {
      const account = await accountOf(ctx.db, did)
      const repo = await repoTotals(ctx.db, did)
      if (!account || !repo) throw accountNotFound()
      const blobs = await countBlobs(ctx.db, did)
      return {
        activated: statusOf(account) === 'active',
        validDid: await isDidFit(ctx, did),
        repoCommit: repo.head.toString(),
        repoRev: repo.rev,
        repoBlocks: repo.blocks,
        indexedRecords: repo.records,
        privateStateValues: 0,
        expectedBlobs: blobs.expected,
        importedBlobs: blobs.imported,
      }
    },
  }),
  procedure('com.atproto.server.activateAccount', {
    auth: fullAccess(),
    handler: ({ ctx, caller }) => activateAccount(ctx, caller.did),
  }),
  procedure('com.atproto.server.deactivateAccount', {
    auth: access({ sessions: ['full', 'takendown'] }),
    handler: ({ ctx, caller, input }) => deactivateAccount(ctx, caller.did, input.deleteAfter === undefined ? null : Date.parse(input.deleteAfter)),
  }),
  procedure('com.atproto.server.requestAccountDelete', {
    auth: fullAccess({ standing: true }),
    handler: (call) => requestCode(call, call.caller.did, 'delete_account'),
  }),
  procedure('com.atproto.server.deleteAccount', {
    limit: 'deleteAccount',
    handler: ({ ctx, input }) => deleteOwnAccount(ctx, input),
  }),
]
