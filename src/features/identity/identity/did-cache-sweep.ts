/** Deletes cached DID documents that are too old to serve, and notes of old operations. */
import { deleteInPieces, throttle } from '../../../base/pace.ts'
import { HOUR_SECS } from '../../../base/durations.ts'
import type { Sweep } from '../../../platform/running/sweeps.ts'
import { didDocuments } from './did-document-store.ts'
import { DOCUMENT_KEPT_MILLIS } from './did-resolution.ts'
import { forgetOldOperations } from './own-operation-store.ts'

/** Documents per statement; each may have 64 KiB. */
const ROWS = 100

export const didCacheSweep: Sweep = {
  name: 'did-cache',
  intervalSecs: () => HOUR_SECS,
  async run({ db, clock, busyShare }, stopping) {
    const now = clock.now()
    await forgetOldOperations(db, now)
    const forgetSome = (limit: number) => didDocuments.forgetBefore(db, now - DOCUMENT_KEPT_MILLIS, limit)
    return { deleted: await deleteInPieces(throttle(stopping, busyShare), ROWS, forgetSome) }
  },
}
