/**
 * Scheduled backups. The server runs the backup command in a separate process, so that it can keep serving requests.
 */
import { DAY_SECS } from '../../../base/durations.ts'
import { constants, setPriority } from 'node:os'
import { selfCommand } from '../../../platform/running/self.ts'
import type { Sweep } from '../../../platform/running/sweeps.ts'

export const backupSweep: Sweep = {
  name: 'backup',
  maxPassSecs: 3 * DAY_SECS,
  intervalSecs: ({ backup }) => (backup.destination === null ? 0 : backup.intervalSecs),
  lacks: ({ backup }) => (backup.destination === null ? 'backup.destination is not set' : null),
  async run({ config, log }) {
    const destination = config.backup.destination!
    const { keep } = config.backup
    // The child reads the same environment and configuration file as this process. These keys may have come from the
    // command line instead (`serve --domain`).
    const env = {
      ...process.env,
      SERVICE_PUBLIC_URL: config.publicUrl,
      SERVICE_AVAILABLE_USER_DOMAINS: config.availableUserDomains.join(','),
      SERVICE_DATA_DIR: config.dataDir,
    }
    const child = Bun.spawn(
      selfCommand('backup', destination, '--keep', String(keep), ...(config.development ? ['--dev'] : [])),
      { env, stdout: 'pipe', stderr: 'pipe' },
    )
    // Requests have priority over the backup.
    setPriority(child.pid, constants.priority.PRIORITY_LOW)
    const [exitCode, output, errors] = await Promise.all([
      child.exited,
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
    ])
    if (exitCode !== 0) throw new Error(`the backup failed: ${errors.trim()}`)
    log.info('backup completed', { report: output.trim() })
    return { made: 1, errors: 0 }
  },
}
