import type { Feature } from '../../../http/feature.ts'
import { didCacheSweep } from './did-cache-sweep.ts'
import { forgetDidDocument } from './did-document-store.ts'
import { forgetOwnOperations } from './own-operation-store.ts'
import { resolutionRoutes } from './resolution-routes.ts'

export const identity: Feature = {
  name: 'identity',
  routes: resolutionRoutes,
  sweeps: [didCacheSweep],
  async forgetAccount(_, tx, did) {
    await forgetDidDocument(tx, did)
    await forgetOwnOperations(tx, did)
  },
}
