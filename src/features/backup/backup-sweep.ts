/** Scheduled backups. The server runs the command as a process of its own, so that it goes on answering. */
import { constants, setPriority } from 'node:os'
import { selfCommand } from '../../platform/running/self.ts'
import type { Sweep } from '../../platform/running/sweeps.ts'

export const backupSweep: Sweep = {
  name: 'backup',
  intervalSecs: ({ backup }) => (backup.destination === null ? 0 : backup.intervalSecs),
  async run({ config, log }) {
    const { destination, keep } = config.backup
    if (destination === null) throw new Error('backup.destination is not set')
    // The configuration reaches it as it reached this process: by the environment and the file.
    const child = Bun.spawn(selfCommand('backup', destination, '--keep', String(keep), ...(config.development ? ['--dev'] : [])), {
      stdout: 'pipe',
      stderr: 'pipe',
    })
    // Whoever waits for an answer goes first.
    setPriority(child.pid, constants.priority.PRIORITY_LOW)
    const [exitCode, output, errors] = await Promise.all([
      child.exited,
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
    ])
    if (exitCode !== 0) throw new Error(`the backup failed: ${errors.trim()}`)
    log.info('backup made', { report: output.trim() })
    return { made: 1, errors: 0 }
  },
}
