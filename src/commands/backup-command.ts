import { makeBackup, openArchive } from '../features/backup/backup.ts'
import { processLog } from '../platform/running/log.ts'
import { exitCodes, integerOption, Misuse } from './command.ts'
import { configured } from './configuration.ts'

export const backupCommand = configured({
  name: 'backup',
  summary: 'Make a backup, even while the server runs.',
  parameters: ['[folder or s3://bucket/prefix]'],
  details: `Copies the database as of one instant, and every blob that the destination does not hold yet. All backups at a
destination share the blobs. The default destination is backup.destination. A bucket is accessed at
blob_mirror.endpoint with the access keys of blob_mirror.

Blobs that are in a bucket (blobs.store) are not copied, only listed: turn on versioning of that bucket, and keep its
old versions for as long as backups. A PostgreSQL database is backed up by PostgreSQL's own tools: pg_dump, or base
backups with an archive of its log, which can restore any instant.

With backup.passphrase (SERVICE_BACKUP_PASSPHRASE) everything is encrypted in the age format. Without it the backup is
as readable as the data directory, and contains the master key unless SERVICE_SIGNING_KEY_MASTER_KEY is configured.`,
  options: { keep: { value: 'n', doc: 'Delete all but the newest n backups at the destination.' } },
  async run({ terminal, config, positionals, options }) {
    const place = positionals[0] ?? config.backup.destination
    if (place === null || place === undefined) throw new Misuse('name a destination for the backup, or set backup.destination')
    const { snapshot, databaseBytes, blobsCopied, blobsKept, missingBlobs, snapshotsDropped } = await makeBackup(
      config,
      openArchive(place, config),
      {
        passphrase: config.backup.passphrase?.reveal() ?? null,
        keep: integerOption(options, 'keep', 1) ?? null,
        now: new Date(),
        log: processLog(config),
      },
    )
    if (config.blobs.store === 's3')
      terminal.out('the blobs stay in their bucket and are not part of the backup: versioning of the bucket must keep deleted ones')
    terminal.out(
      `${snapshot}: database of ${databaseBytes} bytes, ${blobsCopied} blobs copied, ${blobsKept} already there, ${missingBlobs} missing, ${snapshotsDropped} old backups deleted`,
    )
    return missingBlobs === 0 ? exitCodes.ok : exitCodes.failed
  },
})
