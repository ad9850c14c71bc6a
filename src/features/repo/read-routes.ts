/** Methods of `com.atproto.repo` that read records. */
import { invalidRequest, Refusal } from '../../http/errors.ts'
import { query } from '../../http/endpoint.ts'
import { claimedHandle } from '../../protocol/did-document.ts'
import { recordUri, type AtUri, type Nsid, type RecordKey } from '../../protocol/identifiers.ts'
import { jsonText } from '../../protocol/json-text.ts'
import { accountAt, activityOf } from '../accounts/accounts.ts'
import { requireVisibleRepo } from '../auth/visibility.ts'
import { INVALID_HANDLE, resolveDid } from '../identity/identity.ts'
import { appviewService, forward, namedService } from '../proxy/proxy.ts'
import { findRecordOf, listCollections, listRecords, type StoredRecord } from './record-store.ts'
import { findHead } from './repo-store.ts'

/** A record as these methods show it, in the parts of a JSON text; nothing in its URI needs an escape. */
const partsOf = (uri: AtUri, { cid, value }: Pick<StoredRecord, 'cid' | 'value'>) => [`{"uri":"${uri}","cid":"${cid}","value":`, value, '}']

export const readRoutes = [
  query('com.atproto.repo.getRecord', {
    async handler(call) {
      const { ctx, params } = call
      const { repo, collection, rkey, cid } = params
      const account = await accountAt(ctx.db, repo)
      // What is not here, or not to be seen here, the network may know.
      if (account === null || !activityOf(account).active) return forward(call, { service: namedService(call.request) ?? appviewService(ctx.config), iss: null })
      const record = await findRecordOf(ctx.db, account.did, `${collection}/${rkey}`)
      const uri = recordUri(account.did, collection, rkey)
      if (record === null || record.takedownRef !== null || (cid !== undefined && cid !== record.cid.toString())) {
        throw new Refusal(400, 'RecordNotFound', `Could not locate record: ${uri}`)
      }
      return jsonText(partsOf(uri, record))
    },
  }),

  query('com.atproto.repo.listRecords', {
    async handler({ ctx, params: { repo, collection, limit, cursor, reverse } }) {
      const account = await accountAt(ctx.db, repo)
      if (account === null || !activityOf(account).active) throw invalidRequest(`Could not find repo: ${repo}`)
      const { did } = account
      const page = await listRecords(ctx.db, did, { collection, after: cursor ?? null, descending: !reverse, limit })
      const rkeyOf = (path: string) => path.slice(collection.length + 1) as RecordKey
      const records = page.flatMap((record, index) => [index === 0 ? '' : ',', ...partsOf(recordUri(did, collection, rkeyOf(record.path)), record)])
      const last = page.at(-1)
      return jsonText(['{"records":[', ...records, last === undefined ? ']}' : `],"cursor":"${rkeyOf(last.path)}"}`])
    },
  }),

  query('com.atproto.repo.describeRepo', {
    async handler({ ctx, params: { repo } }) {
      const account = await accountAt(ctx.db, repo)
      if (account === null) throw new Refusal(400, 'RepoNotFound', `Could not find repo for DID: ${repo}`)
      const { did, handle } = account
      await requireVisibleRepo(ctx, { did: null, admin: false }, did)
      const resolution = await resolveDid(ctx, did)
      if (!resolution.ok) throw invalidRequest(`Could not resolve DID: ${did}`)
      const head = await findHead(ctx.db, did)
      const collections = head === null ? [] : await listCollections(ctx.db, head.id)
      return {
        handle: handle ?? INVALID_HANDLE,
        did,
        didDoc: resolution.document as unknown as Record<string, unknown>,
        collections: collections as Nsid[],
        handleIsCorrect: handle !== null && claimedHandle(resolution.document) === handle,
      }
    },
  }),
]
