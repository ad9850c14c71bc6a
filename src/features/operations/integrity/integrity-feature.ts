/** What the running check plugs into the server. */
import { route } from '../../../http/endpoint.ts'
import type { Feature } from '../../../http/feature.ts'
import { wireTime, wireTimeOrNull } from '../../../protocol/identifiers.ts'
import { operator } from '../operators/operators.ts'
import { integritySweep } from './integrity-sweep.ts'
import {
  countDamagedRepos,
  currentIntegrityRound,
  damagedRepos,
  forgetFindings,
  mayLackRecords,
} from './integrity-store.ts'

/** Most damaged repositories in the report. */
const MAX_LISTED = 100

export const integrity: Feature = {
  name: 'integrity',
  sweeps: [integritySweep],
  routes: [
    /** The progress of the check of all repositories, and the repositories in which it found something. */
    route('GET', '/v1/admin/integrity', {
      auth: operator(),
      async handler({ ctx: { db } }) {
        const round = await currentIntegrityRound(db)
        return {
          round: round && {
            beganAt: wireTime(round.beganAt),
            endedAt: wireTimeOrNull(round.endedAt),
            repos: round.repos,
            completedAt: wireTimeOrNull(round.completedAt),
            completedRepos: round.completedRepos,
          },
          count: await countDamagedRepos(db),
          damaged: (await damagedRepos(db, MAX_LISTED)).map(({ since, ...repo }) => ({
            ...repo,
            since: wireTime(since),
          })),
        }
      },
    }),
  ],
  async prepare({ metrics, db }) {
    metrics.gauge('integrity_damaged_repos', 'Repositories in which the running check found something', () =>
      countDamagedRepos(db),
    )
  },
  // A record that was lost no longer names its blobs, so they must be kept.
  keepsBlobs: mayLackRecords,
  async forgetAccount(_, tx, did) {
    await forgetFindings(tx, did)
  },
}
