/**
 * How much storage accounts use. An account may have any number of small blobs, and adding them up takes a while. On
 * SQLite, the size of a new blob is therefore added to the last sum, and the blobs are only added up again when the
 * result would exceed the quota, or reach a share of it. The remembered sum may be too high, after a deletion, but
 * never too low, because one process adds all blobs. On PostgreSQL, where several nodes add blobs, the database adds
 * them up each time, which does not keep the event loop busy.
 */
import { BoundedCache } from '../../../base/bounded-cache.ts'
import { perContext, type Context } from '../../../platform/context.ts'
import type { Reader } from '../../../platform/database/database.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { effectiveQuota, quotaOf, reachesShare, type Usage } from '../../identity/quotas/quotas.ts'
import { blobRoom } from './blob-store.ts'

/** Accounts whose sums are remembered. */
const MAX_ACCOUNTS = 10_000

const sums = perContext(({ db }) => (db.cluster === null ? new BoundedCache<number, Did>(MAX_ACCOUNTS) : null))

/**
 * Returns how many bytes of blobs the account has, before and after it gets one of `size` bytes: exact figures if the
 * quota would be exceeded or a share of it reached.
 */
export async function usageWith(ctx: Context, reader: Reader, did: Did, size: number): Promise<Usage> {
  const known = sums(ctx)?.get(did)
  if (known !== undefined) {
    const quota = (await quotaOf(ctx, reader, did)).blobBytes
    const usage = { before: known, after: known + size, quota }
    if (quota === 0 || (usage.after <= quota && !reachesShare(usage))) return usage
  }
  const { bytes: before, maxBytes } = await blobRoom(reader, did)
  const quota = effectiveQuota(ctx.config, { records: null, blobBytes: maxBytes }).blobBytes
  return { before, after: before + size, quota }
}

/** Call in the transaction in which `usageWith` was asked, and which adds the blob. */
export const noteUsage = (ctx: Context, did: Did, { after }: Usage): void => sums(ctx)?.set(did, after)
