/** Quotas as operators see and set them: of one account, and of all accounts that have none of their own. */
import { Type } from '@sinclair/typebox'
import { route, type RouteCall } from '../../../http/endpoint.ts'
import { invalidRequest } from '../../../http/errors.ts'
import { readJson } from '../../../http/json-input.ts'
import type { Reader, Tx } from '../../../platform/database/database.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import {
  effectiveQuota,
  findDefaultQuota,
  findOwnQuota,
  quotaOf,
  updateDefaultQuota,
  updateOwnQuota,
  type SetQuota,
} from '../../identity/quotas/quotas.ts'
import { blobCounts } from '../../data/blobs/blobs.ts'
import { recordTotals } from '../../data/repo/repo.ts'
import { actorOf, namedAccount, operator, recordAudit, type Operator } from '../operators/operators.ts'

const limit = Type.Optional(Type.Union([Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }), Type.Null()]))
/** A missing member changes nothing; null removes the quota that was set; 0 is no limit. */
const changes = Type.Object({ records: limit, blobBytes: limit })

interface Target {
  /** The account; undefined for all. */
  subject?: Did
  find(reader: Reader): Promise<SetQuota>
  update(tx: Tx, quota: SetQuota): Promise<number>
}

const allAccounts: Target = { find: findDefaultQuota, update: updateDefaultQuota }
const oneAccount = (did: Did): Target => ({
  subject: did,
  find: (reader) => findOwnQuota(reader, did),
  update: (tx, quota) => updateOwnQuota(tx, did, quota),
})

async function change(call: RouteCall<Operator>, { subject, find, update }: Target): Promise<void> {
  const given = await readJson(call.body, changes)
  if (given.records === undefined && given.blobBytes === undefined)
    throw invalidRequest('Name a quota: records or blobBytes')
  await call.ctx.db.transaction(async (tx) => {
    const before = await find(tx)
    const { records = before.records, blobBytes = before.blobBytes } = given
    await update(tx, { records, blobBytes })
    const detail = JSON.stringify({ records, blobBytes })
    await recordAudit(call, tx, { actor: actorOf(call.caller), action: 'quota_set', subject, detail })
  })
}

async function viewOfAccount({ ctx }: RouteCall<Operator>, did: Did) {
  const [quota, own, records, { bytes }] = await Promise.all([
    quotaOf(ctx, ctx.db, did),
    findOwnQuota(ctx.db, did),
    recordTotals.read(ctx.db, did),
    blobCounts.stored(ctx, did),
  ])
  return { did, quota, own, used: { records, blobBytes: bytes } }
}

async function viewOfDefault({ ctx }: RouteCall<Operator>) {
  const set = await findDefaultQuota(ctx.db)
  return { quota: effectiveQuota(ctx.config, set), own: set }
}

export const quotaRoutes = [
  route('GET', '/v1/admin/quota', { auth: operator('observe'), handler: viewOfDefault }),

  route('POST', '/v1/admin/quota', {
    auth: operator(),
    async handler(call) {
      await change(call, allAccounts)
      return viewOfDefault(call)
    },
  }),

  route('GET', '/v1/admin/accounts/:did/quota', {
    auth: operator('readAccounts'),
    handler: async (call) => viewOfAccount(call, (await namedAccount(call.ctx.db, call.path)).did),
  }),

  route('POST', '/v1/admin/accounts/:did/quota', {
    auth: operator(),
    async handler(call) {
      const { did } = await namedAccount(call.ctx.db, call.path)
      await change(call, oneAccount(did))
      return viewOfAccount(call, did)
    },
  }),
]
