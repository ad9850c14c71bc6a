/** Methods of `com.atproto.repo` that read records. */
import { invalidRequest, Refusal } from '../../../http/errors.ts'
import { JsonText, query } from '../../../http/endpoint.ts'
import { passOn } from '../../../http/hooks.ts'
import { cidText } from '../../../protocol/cid.ts'
import { claimedHandle } from '../../../protocol/did-document.ts'
import { INVALID_HANDLE, recordUri, type Nsid } from '../../../protocol/identifiers.ts'
import { accountSummary } from '../../identity/accounts/accounts.ts'
import { requireVisible } from '../../access/auth/auth.ts'
import { resolveDid } from '../../identity/identity/identity.ts'
import { collectionsOf } from './collection-lists.ts'
import { recordPage } from './record-pages.ts'
import { visibleRecordAt, type RecordBeside } from './record-store.ts'
import { recordViews } from './record-views.ts'
import { editionBeside, editionOf, type EditionBeside } from './repo-store.ts'

export const readRoutes = [
  query('com.atproto.repo.getRecord', {
    async handler(call) {
      const { ctx, params } = call
      const { repo, collection, rkey, cid } = params
      const path = `${collection}/${rkey}`
      const account = await accountSummary<RecordBeside>(ctx.db, repo, visibleRecordAt(path))
      // The AppView may have repositories that this server does not have or must not serve.
      if (account?.status !== 'active') return passOn(call)
      const { did, beside: record } = account
      if (record.cid === null || (cid !== undefined && cid !== cidText(record.cid))) {
        throw new Refusal(400, 'RecordNotFound', `Could not locate record: ${recordUri(did, path)}`)
      }
      return new JsonText(recordViews(ctx).of(did, { path, cid: record.cid, value: record.value }))
    },
  }),

  query('com.atproto.repo.listRecords', {
    async handler({ ctx, params: { repo, collection, limit, cursor, reverse } }) {
      const account = await accountSummary<EditionBeside>(ctx.db, repo, editionBeside)
      if (account?.status !== 'active') throw invalidRequest(`Could not find repo: ${repo}`)
      const range = { collection, after: cursor ?? null, descending: !reverse, limit }
      return recordPage(ctx, account.did, editionOf(account.beside), range)
    },
  }),

  query('com.atproto.repo.describeRepo', {
    async handler({ ctx, params: { repo } }) {
      const account = await accountSummary<EditionBeside>(ctx.db, repo, editionBeside)
      if (account === null) throw new Refusal(400, 'RepoNotFound', `Could not find repo for DID: ${repo}`)
      const { did, handle, status, beside } = account
      requireVisible(status, { did: null, admin: false }, did)
      const resolution = await resolveDid(ctx, did)
      if (!resolution.ok) throw invalidRequest(`Could not resolve DID: ${did}`)
      const claimed = claimedHandle(resolution.document)
      // The identity may name another of the account's handles than the oldest.
      const isFurther = claimed !== null && claimed !== handle && (await accountSummary(ctx.db, claimed))?.did === did
      return {
        handle: (isFurther ? claimed : handle) ?? INVALID_HANDLE,
        did,
        didDoc: resolution.document as unknown as Record<string, unknown>,
        collections: (await collectionsOf(ctx, did, editionOf(beside))) as Nsid[],
        handleIsCorrect: isFurther || (handle !== null && claimed === handle),
      }
    },
  }),
]
