/**
 * Verifies stored blobs. In a folder, every pass hashes every file. In a bucket, every pass compares the list of
 * objects with the rows, and hashes a share of the objects: after as many passes as there are shares, every object has
 * been hashed.
 */
import { DAY_SECS } from '../../../base/durations.ts'
import type { Sweep } from '../../../platform/running/sweeps.ts'
import { parseCid } from '../../../protocol/cid.ts'
import { blobStorage } from './open-storage.ts'
import { scrub } from './scrubbing.ts'

/** Reading a bucket costs money and time: with the default interval, every object is hashed within 16 days. */
const SHARES = 64

export const scrubSweep: Sweep = {
  name: 'blob-scrub',
  maxPassSecs: 3 * DAY_SECS,
  destructive: true,
  intervalSecs: ({ blobScrub }) => blobScrub.intervalSecs,
  counts: { flagged: 'blob_scrub_flagged_total', healed: 'blob_scrub_healed_total' },
  run(ctx, stopping) {
    if (!blobStorage(ctx).isShared) return scrub(ctx, stopping, () => true)
    // The clock decides which share is next, so that the order continues after a restart and on another server.
    const turn = Math.floor(ctx.clock.now() / (ctx.config.blobScrub.intervalSecs * 1000)) % SHARES
    return scrub(ctx, stopping, (cid) => (parseCid(cid)?.digest[0] ?? 0) % SHARES === turn)
  },
}
