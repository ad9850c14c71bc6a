/**
 * Keeps a removal from deleting bytes whose row is about to be written, and an upload from relying on bytes that are
 * about to be deleted.
 *
 * In a storage of one server, a queue per CID is enough. In a shared storage, servers know nothing of each other, so
 * rows decide. A removal waits for an hour, which is longer than any transaction. Then a server takes the tombstone, in
 * a transaction that also checks again that no account owns the blob, and only then removes the object. If that server
 * freezes, another one takes the tombstone, and the first one removes nothing more. An upload deletes the tombstone in
 * the transaction that writes its row. If the tombstone was taken in the meantime, the object may be gone: then the
 * upload writes no row, and places its object again once the removal has ended.
 *
 * The tombstone of an ended removal is kept for an hour, because an upload that placed its object before the removal
 * must see it.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { HOUR_MILLIS } from '../../../base/durations.ts'
import { serviceUnavailable } from '../../../http/errors.ts'
import type { Context } from '../../../platform/context.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'
import { lockOn, OutcomeUnknown, type Lock, type Tx } from '../../../platform/database/database.ts'
import { tidyUp } from '../../../platform/running/tidying.ts'
import type { IncomingBlob } from './blob-storage.ts'
import { deleteAllBlobs, hasOwner } from './blob-store.ts'
import { blobStorage } from './open-storage.ts'
import { deleteAllReferences } from './reference-store.ts'
import {
  deleteRemovals,
  deleteTombstone,
  findTombstone,
  finishTombstones,
  forgetTombstones,
  insertRemovalOfUnowned,
  takeTombstones,
} from './removal-store.ts'

/** How long a removal waits, and how long its tombstone is kept afterwards. */
const TOMBSTONE_MILLIS = HOUR_MILLIS
/** A server removes an object within a minute of taking its tombstone. After this time, the server counts as dead. */
const TAKER_MILLIS = 600_000
/** While the same blob is being removed, an upload waits: this many times, for this long. */
const MAX_WAITS = 20
const WAIT_MILLIS = 250
const RETRY_AFTER_SECS = 10
/** Most times that an upload places its object. */
const MAX_PLACINGS = 5

/** The object was placed before a removal that may have removed it. */
export class Overtaken extends Error {}

const beingRemoved = () => serviceUnavailable('The same blob is being removed at the moment', RETRY_AFTER_SECS)

/**
 * Place a received blob and write its row with `write`, under a lock. On failure, neither is left, except that the
 * bytes stay if it is unknown whether the row was written.
 */
export async function keepBlob(
  ctx: Context,
  incoming: IncomingBlob,
  lock: Lock,
  write: (tx: Tx) => Promise<void>,
): Promise<void> {
  const storage = blobStorage(ctx)
  const { cid } = incoming
  await storage.alone(cid, async () => {
    for (let placings = 1; ; placings++) {
      const lastTaker = storage.isShared ? await endedRemoval(ctx, cid) : null
      await incoming.place()
      try {
        await ctx.db.transactionOn([lock, lockOn('blob', cid)], async (tx) => {
          if (storage.isShared) await cancelRemoval(tx, cid, lastTaker)
          await write(tx)
        })
        return
      } catch (error) {
        if (error instanceof Overtaken && placings < MAX_PLACINGS) continue
        // If the row may have been written after all, it needs the bytes.
        if (!(error instanceof OutcomeUnknown)) await tidyUp(ctx, () => dropPlaced(ctx, cid))
        throw error instanceof Overtaken ? beingRemoved() : error
      }
    }
  })
}

/** Returns the taker of the last removal that has ended; null if there is none. Waits while a removal is under way. */
async function endedRemoval(ctx: Context, cid: string): Promise<string | null> {
  for (let waits = 0; ; waits++) {
    const found = await findTombstone(ctx.db, cid)
    if (found === null || found.takenAt === null) return null
    if (found.removedAt !== null) return found.taker
    if (waits === MAX_WAITS) throw beingRemoved()
    await sleep(WAIT_MILLIS)
  }
}

/**
 * Delete the tombstone, in the transaction that gives the blob an owner. Throws `Overtaken` if a removal has taken it
 * since the object was placed. `lastTaker` names the removal that had ended before that.
 */
export async function cancelRemoval(tx: Tx, cid: string, lastTaker: string | null): Promise<void> {
  const found = await deleteTombstone(tx, cid)
  if (found === null || found.takenAt === null) return
  if (found.removedAt === null || found.taker !== lastTaker)
    throw new Overtaken('the blob was removed after it was placed')
}

/**
 * Drop a placed blob whose row could not be written. Looks for an owner in a transaction, which also sees rows that are
 * committed but that readers do not see yet.
 */
async function dropPlaced(ctx: Context, cid: string): Promise<void> {
  const storage = blobStorage(ctx)
  if (storage.isShared) await ctx.db.transaction((tx) => insertRemovalOfUnowned(tx, cid, ctx.clock.now()))
  else if (!(await ctx.db.transaction((tx) => hasOwner(tx, cid)))) await storage.remove(cid)
}

/**
 * Call in the transaction that purges an account. Returns CIDs for `removeBlobFiles`, to be called once the transaction
 * is durable.
 */
export async function deleteAccountBlobs(tx: Tx, did: Did, now: Millis): Promise<string[]> {
  await deleteAllReferences(tx, did)
  return deleteAllBlobs(tx, did, now)
}

/**
 * Delete blobs without an owner. Call it once the deletion of their rows is durable. After a crash, the next pass of
 * the GC continues.
 */
export async function removeBlobFiles(ctx: Context, cids: readonly string[]): Promise<void> {
  const removed = await removeOwnFiles(ctx, cids)
  if (removed.length > 0) await ctx.db.transaction((tx) => deleteRemovals(tx, removed))
}

/**
 * Remove the blobs that still have no owner: an upload may have arrived in the meantime. Returns those whose rows in
 * `blob_removal` may be deleted: none in a shared storage, whose tombstones have to wait.
 */
export async function removeOwnFiles(ctx: Context, cids: readonly string[]): Promise<readonly string[]> {
  const storage = blobStorage(ctx)
  if (storage.isShared) return []
  for (const cid of cids) await storage.alone(cid, () => removeUnowned(ctx, cid))
  return cids
}

async function removeUnowned(ctx: Context, cid: string): Promise<void> {
  if (!(await hasOwner(ctx.db, cid))) await blobStorage(ctx).remove(cid)
}

/**
 * Continue removals that are noted: in a storage of one server all of them, in a shared one those that have waited long
 * enough.
 */
export async function continueRemovals(ctx: Context, cids: readonly string[]): Promise<void> {
  if (!blobStorage(ctx).isShared) return removeBlobFiles(ctx, cids)
  const now = ctx.clock.now()
  const taker = crypto.randomUUID()
  const due = { cids, taker, now, unownedUntil: now - TOMBSTONE_MILLIS, takenUntil: now - TAKER_MILLIS }
  const taken = await ctx.db.transaction((tx) => takeTombstones(tx, due))
  const removed: string[] = []
  try {
    for (const cid of taken) {
      // If this server was frozen, another one may have removed the object, and an upload may have placed it again
      // since.
      if ((await findTombstone(ctx.db, cid))?.taker !== taker) continue
      await blobStorage(ctx).remove(cid)
      removed.push(cid)
    }
  } finally {
    // The other tombstones stay taken: their objects may or may not be there, and another taker will remove them.
    if (removed.length > 0)
      await ctx.db.transaction((tx) => finishTombstones(tx, { cids: removed, taker, now: ctx.clock.now() }))
  }
}

/** Forget removals that ended long ago. */
export async function forgetRemovals(ctx: Context): Promise<void> {
  if (blobStorage(ctx).isShared)
    await ctx.db.transaction((tx) => forgetTombstones(tx, ctx.clock.now() - TOMBSTONE_MILLIS))
}
