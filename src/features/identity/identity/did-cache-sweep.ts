/** Deletes cached DID documents that are too old to serve. */
import { HOUR_SECS } from '../../../base/durations.ts'
import type { Sweep } from '../../../platform/running/sweeps.ts'
import { didDocuments } from './did-document-store.ts'
import { DOCUMENT_KEPT_MILLIS } from './did-resolution.ts'

export const didCacheSweep: Sweep = {
  name: 'did-cache',
  intervalSecs: () => HOUR_SECS,
  run: async ({ db, clock }) => ({ deleted: await didDocuments.forgetBefore(db, clock.now() - DOCUMENT_KEPT_MILLIS) }),
}
