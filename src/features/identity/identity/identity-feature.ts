import type { Feature } from '../../../http/feature.ts'
import { forgetDidDocument } from './did-document-store.ts'
import { deleteReservationsOf } from './name-reservation-store.ts'
import { forgetReservedKey } from './reserved-key-store.ts'
import { deleteWebDocument } from './web-document-store.ts'
import { didRoutes } from './did-routes.ts'
import { didCacheSweep } from './did-cache-sweep.ts'
import { handleRoutes } from './handle-routes.ts'
import { furtherHandleRoutes } from './further-handle-routes.ts'
import { nameClaimSweep } from './name-claim-sweep.ts'
import { leaveNamesOfGone } from './name-claims.ts'
import { reservedKeySweep } from './reserved-key-sweep.ts'
import { resolutionRoutes } from './resolution-routes.ts'
import { webDocumentRoutes } from './web-document-routes.ts'
import { wellKnownRoutes } from './well-known-routes.ts'

export const identity: Feature = {
  name: 'identity',
  capabilities: ['didWebHosting'],
  routes: [
    ...resolutionRoutes,
    ...didRoutes,
    ...handleRoutes,
    ...furtherHandleRoutes,
    ...webDocumentRoutes,
    ...wellKnownRoutes,
  ],
  sweeps: [didCacheSweep, reservedKeySweep, nameClaimSweep],
  prepare: leaveNamesOfGone,
  reclaim: leaveNamesOfGone,
  async forgetAccount(_, tx, did) {
    for (const forget of [forgetReservedKey, deleteReservationsOf, forgetDidDocument, deleteWebDocument])
      await forget(tx, did)
  },
}
