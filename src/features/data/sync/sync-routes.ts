/** Methods of `com.atproto.sync`, and `importRepo`: repositories as archives, and their state. */
import { perAccount, procedure, query, type Endpoint } from '../../../http/endpoint.ts'
import { invalidRequest, Refusal } from '../../../http/errors.ts'
import { didCursor, nextCursor } from '../../../http/paged-list.ts'
import { parseCid, type Cid } from '../../../protocol/cid.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { accountOf, accountsAfter } from '../../identity/accounts/accounts.ts'
import { activityOf } from '../../../protocol/account-status.ts'
import { access, optionalAccess, requireVisibleRepo } from '../../access/auth/auth.ts'
import { repoHead, repoHeadsOf } from '../repo/repo.ts'
import { exportBlocks, exportRecord, exportRepo } from './repo-export.ts'
import { importRepo } from './repo-import.ts'

const noRoot = (did: Did) => new Refusal(400, 'RepoNotFound', `Could not find root for DID: ${did}`)

export const syncRoutes: readonly Endpoint[] = [
  query('com.atproto.sync.getRepo', {
    auth: optionalAccess({ sessions: 'every', grants: 'any', agents: true }),
    limit: 'getRepo',
    unlimited: true,
    long: true,
    async handler(call) {
      const { did, since } = call.params
      await requireVisibleRepo(call.ctx, call.caller, did)
      return (await exportRepo(call, did, since ?? null)) ?? refuse(noRoot(did))
    },
  }),
  query('com.atproto.sync.getCheckout', {
    auth: optionalAccess(),
    limit: 'getRepo',
    long: true,
    async handler(call) {
      const { did } = call.params
      await requireVisibleRepo(call.ctx, call.caller, did)
      return (await exportRepo(call, did, null)) ?? refuse(noRoot(did))
    },
  }),
  query('com.atproto.sync.getRecord', {
    auth: optionalAccess(),
    async handler(call) {
      const { did, collection, rkey } = call.params
      await requireVisibleRepo(call.ctx, call.caller, did)
      return (await exportRecord(call, did, `${collection}/${rkey}`)) ?? refuse(noRoot(did))
    },
  }),
  query('com.atproto.sync.getBlocks', {
    auth: optionalAccess(),
    long: true,
    async handler(call) {
      const { did, cids } = call.params
      await requireVisibleRepo(call.ctx, call.caller, did)
      const exported = await exportBlocks(call, did, parseCids(cids))
      if (exported.ok) return exported.response
      throw new Refusal(400, 'BlockNotFound', `Could not find cids: ${exported.missing.join(',')}`)
    },
  }),
  query('com.atproto.sync.getLatestCommit', {
    auth: optionalAccess(),
    async handler({ ctx, caller, params: { did } }) {
      await requireVisibleRepo(ctx, caller, did)
      const head = (await repoHead(ctx.db, did)) ?? refuse(noRoot(did))
      return { cid: head.head.toString(), rev: head.rev }
    },
  }),
  query('com.atproto.sync.getHead', {
    auth: optionalAccess(),
    async handler({ ctx, caller, params: { did } }) {
      await requireVisibleRepo(ctx, caller, did)
      const head =
        (await repoHead(ctx.db, did)) ?? refuse(new Refusal(400, 'HeadNotFound', `Could not find root for DID: ${did}`))
      return { root: head.head.toString() }
    },
  }),
  query('com.atproto.sync.getRepoStatus', {
    async handler({ ctx: { db }, params: { did } }) {
      const account =
        (await accountOf(db, did)) ?? refuse(new Refusal(400, 'RepoNotFound', `Could not find repo for DID: ${did}`))
      const activity = activityOf(account)
      const head = activity.active ? await repoHead(db, did) : null
      return { did, ...activity, ...(head && { rev: head.rev }) }
    },
  }),
  query('com.atproto.sync.listRepos', {
    async handler({ ctx: { db }, params: { limit, cursor } }) {
      const after = cursor === undefined ? null : didCursor.read(cursor)
      const accounts = await accountsAfter(db, after, limit)
      const heads = await repoHeadsOf(
        db,
        accounts.map(({ did }) => did),
      )
      const repos = accounts.flatMap((account) => {
        const head = heads.get(account.did)
        return head ? [{ did: account.did, head: head.head.toString(), rev: head.rev, ...activityOf(account) }] : []
      })
      return { repos, cursor: nextCursor(didCursor, accounts, limit) }
    },
  }),
  procedure('com.atproto.repo.importRepo', {
    auth: access({
      sessions: 'owner',
      grants: (permissions) => permissions.assertAccount({ attr: 'repo', action: 'manage' }),
      refusesTakendown: true,
    }),
    limit: perAccount('importAccount'),
    long: true,
    async handler(call) {
      const {
        ctx,
        caller: { did },
        body,
      } = call
      const { importsEnabled, maxImportSize } = ctx.config.repos
      if (!importsEnabled) throw invalidRequest('Service is not accepting repo imports')
      await importRepo(call, did, body.stream(maxImportSize))
    },
  }),
]

function refuse(refusal: Refusal): never {
  throw refusal
}

function parseCids(texts: readonly string[]): Cid[] {
  return [...new Set(texts)].map((text) => parseCid(text) ?? refuse(invalidRequest(`Invalid cid: ${text}`)))
}
