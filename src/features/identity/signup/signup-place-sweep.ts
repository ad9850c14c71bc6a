/** Deletes the address ranges of sign-ups after a day, even if the limit has been switched off. */
import { DAY_MILLIS, HOUR_SECS } from '../../../base/durations.ts'
import type { Sweep } from '../../../platform/running/sweeps.ts'
import { deleteSignupPlaces } from './signup-place-store.ts'

export const signupPlaceSweep: Sweep = {
  name: 'signup-places',
  destructive: true,
  intervalSecs: () => HOUR_SECS,
  run: async ({ db, clock }) => ({ deleted: await deleteSignupPlaces(db, clock.now() - DAY_MILLIS) }),
}
