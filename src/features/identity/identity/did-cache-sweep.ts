/** Deletes cached DID documents that are too old to serve, and notes of old operations. */
import { HOUR_SECS } from '../../../base/durations.ts'
import type { Sweep } from '../../../platform/running/sweeps.ts'
import { didDocuments } from './did-document-store.ts'
import { DOCUMENT_KEPT_MILLIS } from './did-resolution.ts'
import { forgetOldOperations } from './own-operation-store.ts'

export const didCacheSweep: Sweep = {
  name: 'did-cache',
  intervalSecs: () => HOUR_SECS,
  async run({ db, clock }) {
    const now = clock.now()
    await forgetOldOperations(db, now)
    return { deleted: await didDocuments.forgetBefore(db, now - DOCUMENT_KEPT_MILLIS) }
  },
}
