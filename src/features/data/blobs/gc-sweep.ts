/**
 * Deletes blobs to which no record has referred for the grace period.
 *
 * Rows are deleted first, then files. Before any blob of an account is deleted, the account's references are compared
 * with its records, in its repository and in spaces. If that fails, or if the running check has found that records may
 * be lost, the account keeps all its blobs and references.
 */
import { agreeOnBlobs, keepsBlobs, recordSource } from '../../../http/hooks.ts'
import type { Context } from '../../../platform/context.ts'
import { inPages } from '../../../platform/database/database.ts'
import { throttle, type Throttle } from '../../../base/pace.ts'
import type { Sweep } from '../../../platform/running/sweeps.ts'
import { BoundedCache } from '../../../base/bounded-cache.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'
import {
  beforeExpired,
  deleteExpired,
  findReconciled,
  listExpired,
  upsertReconciled,
  type ExpiredBlob,
} from './blob-store.ts'
import { deleteRemovals, listRemovals } from './removal-store.ts'
import { continueRemovals, forgetRemovals, removeOwnFiles } from './blob-removal.ts'
import { reconcileAccount } from './reconcile.ts'

/** Rows in one transaction; requests wait while it runs. */
const PAGE_ROWS = 5
const PAGE_HEADS = 50
/** Blobs read by one statement; most of them may be kept because of spaces. */
const PAGE_EXPIRED = 500
/** Accounts remembered within a pass; each of them is compared only once. */
const MAX_REMEMBERED_ACCOUNTS = 20_000

interface Pass {
  ctx: Context
  stopping: AbortSignal
  /** Runs work that occupies the event loop. */
  throttled: Throttle
  startedAt: Millis
  /** Blobs whose grace clock started at this instant or before may be deleted. */
  until: Millis
  /** Accounts compared in this pass, and whether that succeeded. */
  reconciled: BoundedCache<boolean>
  /** Accounts about which all features were asked in this pass, and whether they agreed. */
  agreed: BoundedCache<boolean>
  report: { swept: number; errors: number; mended: number; adopted: number }
}

export const gcSweep: Sweep = {
  name: 'blob-gc',
  destructive: true,
  intervalSecs: ({ blobs }) => blobs.gcIntervalSecs,
  counts: { swept: 'blob_gc_swept_total', errors: 'blob_gc_errors_total' },
  async run(ctx, stopping) {
    const startedAt = ctx.clock.now()
    // A grace clock that starts during the pass does not expire in it, even if the grace period is 0.
    const until = Math.min(startedAt - ctx.config.blobs.tempTtlSecs * 1000, startedAt - 1)
    const report = { swept: 0, errors: 0, mended: 0, adopted: 0 }
    const pass: Pass = {
      ctx,
      stopping,
      throttled: throttle(stopping, ctx.busyShare),
      startedAt,
      until,
      reconciled: new BoundedCache(MAX_REMEMBERED_ACCOUNTS),
      agreed: new BoundedCache(MAX_REMEMBERED_ACCOUNTS),
      report,
    }
    await reconcileChanged(pass)
    await finishRemovals(pass)
    await deleteAllExpired(pass)
    return pass.report
  },
}

/** Compare accounts whose repository has changed since the last comparison. */
async function reconcileChanged(pass: Pass): Promise<void> {
  const { ctx, throttled } = pass
  const start: { did: Did | null } = { did: null }
  for await (const heads of inPages(PAGE_HEADS, start, ({ did }, limit) =>
    throttled(() => recordSource(ctx).repos(ctx.db, did, limit)),
  )) {
    const known = await findReconciled(
      ctx.db,
      heads.map(({ did }) => did),
    )
    const compared: { did: Did; rev: string }[] = []
    for (const { did, rev } of heads)
      if (known.get(did) !== rev && (await isReconciled(pass, did))) compared.push({ did, rev })
    if (compared.length > 0) await throttled(() => ctx.db.transaction((tx) => upsertReconciled(tx, compared)))
  }
}

async function isReconciled(pass: Pass, did: Did): Promise<boolean> {
  const { ctx, stopping, throttled, startedAt, reconciled, report } = pass
  const before = reconciled.get(did)
  if (before !== undefined) return before
  if (await throttled(() => keepsBlobs(ctx, ctx.db, did))) {
    ctx.log.warn('a repository is damaged; no blob of the account will be deleted', { did })
    reconciled.set(did, false)
    return false
  }
  const isGood = await reconcileAccount(ctx, did, { now: startedAt, throttled }).then(
    ({ mended, adopted }) => {
      report.mended += mended
      report.adopted += adopted
      return true
    },
    (error) => {
      stopping.throwIfAborted()
      report.errors++
      ctx.log.error('could not compare blob references; no blob of the account will be deleted', { did, error })
      return false
    },
  )
  reconciled.set(did, isGood)
  return isGood
}

async function isAgreed({ ctx, stopping, throttled, agreed, report }: Pass, did: Did): Promise<boolean> {
  const before = agreed.get(did)
  if (before !== undefined) return before
  const isRight = await agreeOnBlobs(ctx, did, throttled).catch((error: unknown) => {
    stopping.throwIfAborted()
    report.errors++
    ctx.log.error('could not compare references in spaces; no blob of the account will be deleted', { did, error })
    return null
  })
  if (isRight === false)
    ctx.log.warn('references in spaces are damaged; no blob of the account will be deleted', { did })
  agreed.set(did, isRight === true)
  return isRight === true
}

/** Remove blobs whose rows were deleted before a crash or, in a storage that is shared, in an earlier pass. */
async function finishRemovals({ ctx, stopping, throttled, report }: Pass): Promise<void> {
  for (let last = ''; ;) {
    const cids = await listRemovals(ctx.db, last, PAGE_ROWS)
    if (cids.length === 0) return forgetRemovals(ctx)
    last = cids.at(-1)!
    try {
      await throttled(() => continueRemovals(ctx, cids))
    } catch (error) {
      stopping.throwIfAborted()
      report.errors++
      ctx.log.warn('could not delete blob files; will retry in the next pass', { error })
    }
  }
}

/** Yields the blobs that may be deleted, a few at a time. */
async function* dueBlobs(pass: Pass): AsyncGenerator<ExpiredBlob[]> {
  const { ctx, throttled, until } = pass
  for await (const page of inPages(PAGE_EXPIRED, beforeExpired, (after, limit) =>
    throttled(() => listExpired(ctx.db, until, after, limit)),
  )) {
    let due: ExpiredBlob[] = []
    for (const blob of page) {
      if (blob.isKept || !(await isReconciled(pass, blob.did)) || !(await isAgreed(pass, blob.did))) continue
      due.push(blob)
      if (due.length < PAGE_ROWS) continue
      yield due
      due = []
    }
    if (due.length > 0) yield due
  }
}

async function deleteAllExpired(pass: Pass): Promise<void> {
  const { ctx, stopping, throttled, report, until } = pass
  /**
   * CIDs whose files were removed. The transaction of the next page also deletes their removal rows, which saves half
   * of the commits.
   */
  let gone: readonly string[] = []
  for await (const due of dueBlobs(pass)) {
    try {
      const { deleted, removals } = await throttled(() =>
        ctx.db.transaction(async (tx) => {
          await deleteRemovals(tx, gone)
          return deleteExpired(tx, due, { until, now: ctx.clock.now() })
        }),
      )
      gone = []
      report.swept += deleted
      // Objects of a bucket are removed in a later pass, by `continueRemovals`.
      gone = await removeOwnFiles(ctx, removals)
    } catch (error) {
      stopping.throwIfAborted()
      report.errors++
      ctx.log.warn('could not delete blobs; will retry in the next pass', { error })
    }
  }
  if (gone.length > 0) await ctx.db.transaction((tx) => deleteRemovals(tx, gone))
}
