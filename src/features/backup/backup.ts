/**
 * The door of backups: making them, checking them and bringing them back, as commands do. The server makes scheduled
 * ones by running the command as a process of its own, so that it goes on answering.
 */
import { constants, setPriority } from 'node:os'
import type { Feature } from '../../http/feature.ts'
import { selfCommand } from '../../platform/running/self.ts'
import type { Sweep } from '../../platform/running/sweeps.ts'

export { openArchive } from './archive.ts'
export { makeBackup } from './backup-writing.ts'
export { continueSequence, fetchSnapshot, installDatabase } from './restoring.ts'
export { sealOf, unsealOf } from './sealing.ts'
export { listSnapshots, readManifest, snapshotName } from './snapshot.ts'
export { verifyEverything } from './verification.ts'

const backupSweep: Sweep = {
  name: 'backup',
  intervalSecs: ({ backup }) => (backup.destination === null ? 0 : backup.intervalSecs),
  async run({ config, log }) {
    const { destination, keep } = config.backup
    if (destination === null) throw new Error('backup.destination is not set')
    // The configuration reaches it as it reached this process: by the environment and the file.
    const child = Bun.spawn(selfCommand('backup', destination, '--keep', String(keep), ...(config.development ? ['--dev'] : [])), { stdout: 'pipe', stderr: 'pipe' })
    // Whoever waits for an answer goes first.
    setPriority(child.pid, constants.priority.PRIORITY_LOW)
    const [exitCode, output, errors] = await Promise.all([child.exited, new Response(child.stdout).text(), new Response(child.stderr).text()])
    if (exitCode !== 0) throw new Error(`the backup failed: ${errors.trim()}`)
    log.info('backup made', { report: output.trim() })
    return { made: 1, errors: 0 }
  },
}

export const backup: Feature = { name: 'backup', sweeps: [backupSweep] }
