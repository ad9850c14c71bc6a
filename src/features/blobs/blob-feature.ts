/** Uploads, and what keeps them whole. Apart from the door, because the routes need guards and guards need accounts. */
import type { Feature } from '../../http/feature.ts'
import { blobFiles } from './blob-files.ts'
import { blobRoutes } from './blob-routes.ts'

export const blobs: Feature = {
  name: 'blobs',
  routes: blobRoutes,
  prepare: (ctx) => blobFiles(ctx).prepare(),
}
