/** Uploads, and what keeps them whole. Apart from the door, because the routes need guards and guards need accounts. */
import type { Feature } from '../../http/feature.ts'
import { blobFiles } from './blob-files.ts'
import { blobRoutes } from './blob-routes.ts'
import { restoreMissing } from './boot-restore.ts'
import { mirrorSweep } from './mirror-sweep.ts'
import { scrubSweep } from './scrub-sweep.ts'

export const blobs: Feature = {
  name: 'blobs',
  routes: blobRoutes,
  sweeps: [mirrorSweep, scrubSweep],
  async prepare(ctx) {
    await blobFiles(ctx).prepare()
    await restoreMissing(ctx)
  },
}
