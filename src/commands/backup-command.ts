import { makeBackup, openArchive } from '../features/backup/backup.ts'
import { processLog } from '../platform/running/log.ts'
import { exitCodes, integerOption, Misuse } from './command.ts'
import { configured } from './configuration.ts'

export const backupCommand = configured({
  name: 'backup',
  summary: 'Make a backup, also while the server runs.',
  parameters: ['[folder or s3://bucket/prefix]'],
  details: `Copies the database as of one instant and every blob that the place does not hold yet; blobs are kept once for all
backups of a place. Without a place, backup.destination is used. A bucket is one of the store that blob_mirror.endpoint
and its keys name.

With backup.passphrase (SERVICE_BACKUP_PASSPHRASE) everything is encrypted in the age format. Without it the backup is
as readable as the data directory, and holds the master key unless SERVICE_SIGNING_KEY_MASTER_KEY is configured.`,
  options: { keep: { value: 'n', doc: 'Drop all but the newest n backups of the place.' } },
  async run({ terminal, config, positionals, options }) {
    const place = positionals[0] ?? config.backup.destination
    if (place === null || place === undefined) throw new Misuse('say where the backup goes, or set backup.destination')
    const { snapshot, databaseBytes, blobsCopied, blobsKept, missingBlobs, snapshotsDropped } = await makeBackup(
      config,
      openArchive(place, config),
      {
        passphrase: config.backup.passphrase?.reveal() ?? null,
        keep: integerOption(options, 'keep', 1) ?? null,
        now: new Date(),
        log: processLog(config.telemetry),
      },
    )
    terminal.out(
      `${snapshot}: database of ${databaseBytes} bytes, ${blobsCopied} blobs copied, ${blobsKept} there already, ${missingBlobs} missing, ${snapshotsDropped} old backups dropped`,
    )
    return missingBlobs === 0 ? exitCodes.ok : exitCodes.failed
  },
})
