/** The routes and sweeps of blobs. Separate from the door, because routes need guards, and guards need accounts. */
import type { Feature } from '../../../http/feature.ts'
import { quarantineSweep } from './quarantine-sweep.ts'
import { removeBlobFiles, deleteAccountBlobs } from './blob-removal.ts'
import { blobMirror } from './blob-mirror.ts'
import { blobRoutes } from './blob-routes.ts'
import { fullScrubSweep } from './full-scrub-sweep.ts'
import { gcSweep } from './gc-sweep.ts'
import { startFetching } from './missing-files.ts'
import { mirrorSweep } from './mirror-sweep.ts'
import { scrubSweep } from './scrub-sweep.ts'
import { prepareStorage } from './storage-check.ts'

export const blobs: Feature = {
  name: 'blobs',
  routes: blobRoutes,
  sweeps: [quarantineSweep, gcSweep, mirrorSweep, scrubSweep, fullScrubSweep],
  async prepare(ctx) {
    await prepareStorage(ctx)
  },
  start(ctx) {
    if (blobMirror(ctx) !== null) return startFetching(ctx)
  },
  async forgetAccount(ctx, tx, did) {
    const cids = await deleteAccountBlobs(tx, did, ctx.clock.now())
    return () => removeBlobFiles(ctx, cids)
  },
}
