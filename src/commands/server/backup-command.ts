import { makeBackup, openArchive } from '../../features/operations/backup/backup.ts'
import { exitCodes, integerOption, Misuse } from '../command.ts'
import { commandLog, configured } from '../configuration.ts'
import { jsonOption, tellResult } from '../report.ts'

const WITHOUT_BLOBS =
  'the backup does not contain the blobs, which are in a bucket: turn on versioning for it, so that deleted blobs are kept, or set backup.bucket_blobs'

export const backupCommand = configured({
  summary: 'Make a backup, even while the server runs.',
  parameters: ['[folder or s3://bucket/prefix]'],
  details: `Copies the database as of one instant, and every blob that the destination does not have yet. All backups at a
destination share the blobs. The default destination is backup.destination. A bucket is accessed at
blob_mirror.endpoint with the access keys of blob_mirror.

Reads a PostgreSQL database in one transaction, into an SQLite file in the data directory, which needs room for it.
"holdfast restore" restores the backup into either database. For recovery to any point in time, use PostgreSQL's own
base backups and log archive.

Blobs stored in a bucket (blobs.store) are listed but not copied, unless backup.bucket_blobs is on: turn on versioning
for that bucket, and keep old versions for as long as backups.

With backup.passphrase (SERVICE_BACKUP_PASSPHRASE) everything is encrypted in the age format. Without it the backup is
as readable as the data directory, and contains the master key unless SERVICE_SIGNING_KEY_MASTER_KEY is configured.`,
  options: { keep: { value: 'n', doc: 'Delete all but the newest n backups of this server.' }, ...jsonOption },
  async run(invocation) {
    const { terminal, config, positionals, options } = invocation
    const place = positionals[0] ?? config.backup.destination
    if (place === null || place === undefined)
      throw new Misuse('name a destination for the backup, or set backup.destination')
    const made = await makeBackup(config, openArchive(place, config), {
      keep: integerOption(options, 'keep', 1) ?? null,
      now: new Date(),
      log: commandLog(invocation, config),
    })
    const { snapshot, databaseBytes, blobsCopied, blobsKept, missingBlobs, snapshotsDropped } = made
    const hasBlobs = config.blobs.store !== 's3' || config.backup.bucketBlobs
    const lines = [
      ...(hasBlobs ? [] : [WITHOUT_BLOBS]),
      `${snapshot}: database of ${databaseBytes} bytes, ${blobsCopied} blobs copied, ${blobsKept} already there, ${missingBlobs} missing, ${snapshotsDropped} old backups deleted`,
    ]
    tellResult(invocation, { ...made, hasBlobs }, lines.join('\n'))
    if (missingBlobs === 0) return exitCodes.ok
    terminal.err(
      `the backup lacks ${missingBlobs} blobs, which are missing or damaged here: "holdfast verify" names them, and "holdfast sweep blob-scrub-full" fetches them from the mirror, if there is one`,
    )
    return exitCodes.failed
  },
})
