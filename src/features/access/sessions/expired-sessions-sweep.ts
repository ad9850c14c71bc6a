/** Deletes each session whose last refresh token, or whose only token, has expired. */
import { HOUR_SECS } from '../../../base/durations.ts'
import type { Sweep } from '../../../platform/running/sweeps.ts'
import { deleteExpiredSessions } from './session-store.ts'
import { deleteExpiredWalletSessions } from './wallet-session-store.ts'

export const expiredSessionsSweep: Sweep = {
  name: 'expired-sessions',
  destructive: true,
  intervalSecs: () => HOUR_SECS,
  run: async ({ db, clock }) => ({
    deleted: (await deleteExpiredSessions(db, clock.now())) + (await deleteExpiredWalletSessions(db, clock.now())),
  }),
}
