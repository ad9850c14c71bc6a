/** Deletes reserved keys that no account has taken. */
import { DAY_MILLIS, HOUR_SECS } from '../../../base/durations.ts'
import type { Sweep } from '../../../platform/running/sweeps.ts'
import { deleteReservedKeysBefore } from './reserved-key-store.ts'

const RESERVATION_MILLIS = 30 * DAY_MILLIS

export const reservedKeySweep: Sweep = {
  name: 'reserved-keys',
  destructive: true,
  intervalSecs: () => HOUR_SECS,
  run: async ({ db, clock }) => ({ deleted: await deleteReservedKeysBefore(db, clock.now() - RESERVATION_MILLIS) }),
}
