import { makeBackup, openArchive } from '../../features/operations/backup/backup.ts'
import { OperatorError } from '../../base/operator-error.ts'
import type { Config } from '../../platform/configuration/config.ts'
import { isPostgresUrl, withoutPassword } from '../../platform/database/database-url.ts'
import { processLog } from '../../platform/running/log.ts'
import { exitCodes, integerOption, Misuse } from '../command.ts'
import { configured } from '../configuration.ts'

export const backupCommand = configured({
  summary: 'Make a backup, even while the server runs.',
  parameters: ['[folder or s3://bucket/prefix]'],
  details: `Copies the database as of one instant, and every blob that the destination does not have yet. All backups at a
destination share the blobs. The default destination is backup.destination. A bucket is accessed at
blob_mirror.endpoint with the access keys of blob_mirror.

Blobs stored in a bucket (blobs.store) are listed but not copied: turn on versioning for that bucket, and keep old
versions for as long as backups. Back up a PostgreSQL database with PostgreSQL's own tools: pg_dump, or base backups
with a WAL archive for point-in-time recovery.

With backup.passphrase (SERVICE_BACKUP_PASSPHRASE) everything is encrypted in the age format. Without it the backup is
as readable as the data directory, and contains the master key unless SERVICE_SIGNING_KEY_MASTER_KEY is configured.`,
  options: { keep: { value: 'n', doc: 'Delete all but the newest n backups at the destination.' } },
  async run({ terminal, config, positionals, options }) {
    if (isPostgresUrl(config.databaseUrl)) throw new OperatorError(onPostgres(config))
    const place = positionals[0] ?? config.backup.destination
    if (place === null || place === undefined)
      throw new Misuse('name a destination for the backup, or set backup.destination')
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
      terminal.out(
        'the backup does not contain the blobs, which are in a bucket: turn on versioning for it, so that deleted blobs are kept',
      )
    terminal.out(
      `${snapshot}: database of ${databaseBytes} bytes, ${blobsCopied} blobs copied, ${blobsKept} already there, ${missingBlobs} missing, ${snapshotsDropped} old backups deleted`,
    )
    return missingBlobs === 0 ? exitCodes.ok : exitCodes.failed
  },
})

/** What to do instead: PostgreSQL and the bucket have backups of their own. */
function onPostgres({ databaseUrl, dataDir, blobs }: Config): string {
  const kept =
    blobs.store === 's3'
      ? 'turn on versioning for the bucket, and keep old versions for as long as backups of the database'
      : `copy ${dataDir} after each backup of the database`
  return `${withoutPassword(databaseUrl)} is not a file: back it up and restore it with PostgreSQL's own tools (pg_dump, or a base backup and its WAL). For the blobs, ${kept}. After a restore, "holdfast verify" lists what is missing`
}
