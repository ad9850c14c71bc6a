/** The sweep of the identity watch, and its report for operators. */
import { route } from '../../../http/endpoint.ts'
import type { Feature } from '../../../http/feature.ts'
import { wireTime, wireTimeOrNull } from '../../../protocol/identifiers.ts'
import { RECOVERY_WINDOW_MILLIS } from '../../../protocol/plc.ts'
import { operator } from '../../operations/operators/operators.ts'
import { identityWatchSweep } from './identity-watch-sweep.ts'
import { changesSince, currentRound, forgetIdentity, misfits } from './watched-identity-store.ts'

/** Most entries of each list in the report. */
const MAX_LISTED = 100

export const identityWatch: Feature = {
  name: 'identity-watch',
  sweeps: [identityWatchSweep],
  routes: [
    /** Identities that others have changed in the last 72 hours, and those that do not fit their accounts. */
    route('GET', '/v1/admin/identities', {
      auth: operator(),
      async handler({ ctx: { db, clock } }) {
        const round = await currentRound(db)
        const changes = await changesSince(db, clock.now() - RECOVERY_WINDOW_MILLIS, MAX_LISTED)
        return {
          round: round && {
            beganAt: wireTime(round.beganAt),
            endedAt: wireTimeOrNull(round.endedAt),
            accounts: round.accounts,
          },
          changed: changes.map(({ did, handle, change: { at, undoableUntil, ...change } }) => ({
            did,
            handle,
            ...change,
            at: wireTime(at),
            undoableUntil: wireTime(undoableUntil),
          })),
          misfits: await misfits(db, MAX_LISTED),
        }
      },
    }),
  ],
  async forgetAccount(_, tx, did) {
    await forgetIdentity(tx, did)
  },
}
