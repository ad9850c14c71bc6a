/** com.atproto.server endpoints for activation, deactivation and deletion. */
import { perAccount, procedure, query } from '../../../http/endpoint.ts'
import { accountNotFound, accountOf } from '../accounts/accounts.ts'
import { mailsOf } from '../mails/mails.ts'
import { statusOf } from '../../../protocol/account-status.ts'
import { access, fullAccess } from '../../access/auth/auth.ts'
import { blobCounts } from '../../data/blobs/blobs.ts'
import { repoTotals } from '../../data/repo/repo.ts'
import { deleteOwnAccount, requestDeletionCode } from './account-deletion.ts'
import { activateAccount, deactivateAccount } from './account-activation.ts'
import { isDidFit } from './did-fitness.ts'

export const lifecycleRoutes = [
  query('com.atproto.server.checkAccountStatus', {
    auth: access({ grants: 'any', agents: true }),
    async handler({ ctx, caller: { did } }) {
      const account = await accountOf(ctx.db, did)
      const repo = await repoTotals(ctx, did)
      if (!account || !repo) throw accountNotFound()
      const blobs = await blobCounts.recent(ctx, did)
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
    limit: perAccount('statusChange'),
    handler: (call) => activateAccount(call, call.caller.did),
  }),
  procedure('com.atproto.server.deactivateAccount', {
    auth: access({ sessions: 'leaving' }),
    limit: perAccount('statusChange'),
    handler: (call) =>
      deactivateAccount(
        call,
        call.caller.did,
        call.input.deleteAfter === undefined ? null : Date.parse(call.input.deleteAfter),
      ),
  }),
  procedure('com.atproto.server.requestAccountDelete', {
    auth: fullAccess({ refusesTakendown: true }),
    limit: mailsOf('delete_account'),
    async handler(call) {
      await requestDeletionCode(call, call.caller.did)
    },
  }),
  procedure('com.atproto.server.deleteAccount', {
    limit: 'deleteAccount',
    handler: (call) => deleteOwnAccount(call, call.input),
  }),
]
