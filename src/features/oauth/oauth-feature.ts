/** The OAuth authorization server: apps ask here for access to an account, and its holder decides. */
import type { Feature } from '../../http/feature.ts'
import { metadataRoutes } from './metadata-routes.ts'
import { proofState } from './proofs.ts'
import { serverKey } from './server-key.ts'

export const oauth: Feature = {
  name: 'oauth',
  routes: [...metadataRoutes],
  async prepare(ctx) {
    await serverKey(ctx)
    await proofState(ctx)
  },
}
