/** The door of labels: what watched labelers say about hosted accounts, for the operator's eyes only. */
import type { Feature } from '../../http/feature.ts'
import { labelerWatchSweep } from './labeler-watch-sweep.ts'

export { countFlaggedAccounts, deleteFlagsAbout, findFlags, isFlagged, type Flag } from './flag-store.ts'

export const labels: Feature = { name: 'labels', sweeps: [labelerWatchSweep] }
