/** Methods of `com.atproto.repo` that read records. */
import { invalidRequest, Refusal } from '../../http/errors.ts'
import { query } from '../../http/endpoint.ts'
import { decode } from '../../protocol/cbor.ts'
import { dataToJson } from '../../protocol/data-model.ts'
import { claimedHandle } from '../../protocol/did-document.ts'
import { recordUri, type Nsid, type RecordKey } from '../../protocol/identifiers.ts'
import { accountAt, activityOf } from '../accounts/accounts.ts'
import { requireVisibleRepo } from '../auth/visibility.ts'
import { INVALID_HANDLE, resolveDid } from '../identity/identity.ts'
import { appviewService, forward, namedService } from '../proxy/proxy.ts'
import { findRecord, listCollections, listRecords } from './record-store.ts'
import { findHead } from './repo-store.ts'

type Value = { [key: string]: unknown }

const valueOf = (block: Uint8Array) => dataToJson(decode(block)) as Value

export const readRoutes = [
  query('com.atproto.repo.getRecord', {
    async handler(call) {
      const { ctx, params } = call
      const { repo, collection, rkey, cid } = params
      const account = await accountAt(ctx.db, repo)
      // What is not here, or not to be seen here, the network may know.
      if (account === null || !activityOf(account).active) return forward(call, { service: namedService(call.request) ?? appviewService(ctx.config), iss: null })
      const { did } = account
      const head = await findHead(ctx.db, did)
      const record = head && (await findRecord(ctx.db, head.id, `${collection}/${rkey}`))
      const uri = recordUri(did, collection, rkey)
      if (record === null || record.takedownRef !== null || (cid !== undefined && cid !== record.cid.toString())) {
        throw new Refusal(400, 'RecordNotFound', `Could not locate record: ${uri}`)
      }
      return { uri, cid: record.cid.toString(), value: valueOf(record.value) }
    },
  }),

  query('com.atproto.repo.listRecords', {
    async handler({ ctx, params: { repo, collection, limit, cursor, reverse } }) {
      const account = await accountAt(ctx.db, repo)
      if (account === null || !activityOf(account).active) throw invalidRequest(`Could not find repo: ${repo}`)
      const { did } = account
      const head = await findHead(ctx.db, did)
      const page = head === null ? [] : await listRecords(ctx.db, head.id, { collection, after: cursor ?? null, descending: !reverse, limit })
      const records = page.map(({ path, cid, value }) => ({
        uri: recordUri(did, collection, path.slice(collection.length + 1) as RecordKey),
        cid: cid.toString(),
        value: valueOf(value),
      }))
      const last = page.at(-1)
      return last === undefined ? { records } : { records, cursor: last.path.slice(collection.length + 1) }
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
        didDoc: resolution.document as unknown as Value,
        collections: collections as Nsid[],
        handleIsCorrect: handle !== null && claimedHandle(resolution.document) === handle,
      }
    },
  }),
]
