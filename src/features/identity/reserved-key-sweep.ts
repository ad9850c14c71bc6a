/** Deletes reserved keys that no account has taken. */
import type { Sweep } from '../../platform/running/sweeps.ts'
import { deleteReservedKeysBefore } from './reserved-key-store.ts'

const RESERVATION_MILLIS = 30 * 24 * 60 * 60 * 1000

export const reservedKeySweep: Sweep = {
  name: 'reserved-keys',
  destructive: true,
  intervalSecs: () => 3600,
  run: async ({ db, clock }) => ({ deleted: await deleteReservedKeysBefore(db, clock.now() - RESERVATION_MILLIS) }),
}
