/** Backups and copies of a whole server: make, verify and restore them. The commands call these functions. */
import type { Feature } from '../../../http/feature.ts'
import { backupSweep } from './backup-sweep.ts'
import { noteStart, startContinuous } from './continuous-backup.ts'

export { continuousState } from './continuous-backup.ts'
export { leaseSeenFrom } from './continuous-lease.ts'
export { fetchInstant } from './continuous-restoring.ts'
export { Following, mayServe, type Followed } from './following.ts'
export { openArchive } from './patient-archive.ts'
export { makeBackup } from './backup-writing.ts'
export { copyServer, releaseTarget, whileRestoring, whileStopped } from './copying.ts'
export {
  agreeOnDatabase,
  continueHistory,
  continueSequence,
  fetchSnapshot,
  installDatabase,
  partsOf,
  type Fetched,
} from './restoring.ts'
export { lastRehearsal, rehearse, type Rehearsal } from './rehearsal.ts'
export { requirePassphrase, sealOf, unsealOf } from './sealing.ts'
export { newestSnapshots, readManifest, snapshotName } from './snapshot.ts'
export { verifyEverything } from './verification.ts'

export const backup: Feature = { name: 'backup', sweeps: [backupSweep], prepare: startContinuous, start: noteStart }
