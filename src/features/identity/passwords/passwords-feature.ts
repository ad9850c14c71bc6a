/** The table of sign-in attempts, which the nodes of a cluster share. */
import type { Feature } from '../../../http/feature.ts'
import { deleteOldAttempts } from './sign-in-attempt-store.ts'

export const passwords: Feature = {
  name: 'passwords',
  reclaim: ({ db, clock }) => deleteOldAttempts(db, clock.now()),
}
