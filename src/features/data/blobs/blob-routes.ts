/** The blob methods of `com.atproto.repo` and `com.atproto.sync`. */
import { perAccount, procedure, query } from '../../../http/endpoint.ts'
import { recordUri } from '../../../protocol/identifiers.ts'
import { accountStatus, refuseMissing } from '../../identity/accounts/accounts.ts'
import {
  access,
  accessOrServiceAuth,
  optionalAccess,
  requirePermission,
  requireVisibleRepo,
} from '../../access/auth/auth.ts'
import { isRecorded, recordUse } from '../../access/callers/callers.ts'
import { downloadBlob } from './blob-download.ts'
import { uploadBlob } from './blob-upload.ts'
import { listReferencedCids, someMissing } from './reference-store.ts'

export const blobRoutes = [
  procedure('com.atproto.repo.uploadBlob', {
    auth: accessOrServiceAuth({
      refusesTakendown: true,
      agents: true,
      grants: (permissions, { body }) => permissions.assertBlob({ mime: body.contentType ?? '*/*' }),
    }),
    limit: perAccount('uploadBlob'),
    async handler(call) {
      const { ctx, caller, body } = call
      const { cid, mimeType, size } = await uploadBlob(ctx, caller.did, body, {
        permit: (mime) => requirePermission(caller, (granted) => granted.assertBlob({ mime })),
        async record(tx, blob) {
          // The caller's session may have ended during the upload.
          await call.revalidate(tx)
          if (isRecorded(caller))
            await recordUse(ctx, tx, caller, {
              type: 'blob_upload',
              detail: { cid: blob.cid, mime_type: blob.mimeType, size: blob.size },
            })
        },
      })
      return { blob: { $type: 'blob' as const, ref: { $link: cid }, mimeType, size } }
    },
  }),

  query('com.atproto.repo.listMissingBlobs', {
    auth: access({ grants: 'any' }),
    async handler({ ctx, caller: { did }, params: { limit, cursor } }) {
      refuseMissing(await accountStatus(ctx.db, did))
      const { missing, next } = await someMissing(ctx.db, { did, limit, cursor })
      return {
        blobs: missing.map(({ cid, record }) => ({ cid, recordUri: recordUri(did, record) })),
        // The last page has a cursor too, as clients of the reference implementation expect.
        cursor: next ?? missing.at(-1)?.cid,
      }
    },
  }),

  query('com.atproto.sync.getBlob', {
    auth: optionalAccess({ sessions: 'every', grants: 'any', agents: true }),
    async handler(call) {
      const { did, cid } = call.params
      await requireVisibleRepo(call.ctx, call.caller, did)
      return downloadBlob(call, call.caller, did, cid)
    },
  }),

  query('com.atproto.sync.listBlobs', {
    auth: optionalAccess({ sessions: 'every', grants: 'any', agents: true }),
    async handler({ ctx, caller, params: { did, since, limit, cursor } }) {
      await requireVisibleRepo(ctx, caller, did)
      const { cids, next } = await listReferencedCids(ctx.db, { did, since, limit, cursor })
      return { cids, cursor: next ?? cids.at(-1) }
    },
  }),
]
