/** What a repair may take from a backup: the rows of its database, which is fetched for the purpose, and its blobs. */
import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { OperatorError } from '../../../base/operator-error.ts'
import type { Context } from '../../../platform/context.ts'
import { inDatabaseWords } from '../../../platform/database/database-words.ts'
import type { Reader } from '../../../platform/database/database.ts'
import { migrations } from '../../../platform/database/embedded-migrations.ts'
import { migrate } from '../../../platform/database/migrations.ts'
import { openDatabase } from '../../../platform/database/open-database.ts'
import { newestSnapshots, openArchive, partsOf, unsealOf } from '../backup/backup.ts'

export interface BackupSources extends AsyncDisposable {
  snapshot: string
  reader: Reader
  /** Returns what may be the bytes of a blob; null if the backup has none. */
  blobs(cid: string): Promise<AsyncIterable<Uint8Array> | null>
}

/** Start of the name of the folder into which the database of a backup is fetched. */
export const FOLDER_PREFIX = '.repair-'

/** `wanted`: the name of a backup, or null for the newest. Throws `OperatorError` if there is none. */
export async function backupSources(
  { config, clock }: Pick<Context, 'config' | 'clock'>,
  wanted: string | null,
): Promise<BackupSources> {
  const { destination, passphrase } = config.backup
  if (destination === null) throw new OperatorError('backup.destination is not set')
  const archive = openArchive(destination, config)
  const parts = partsOf(archive, await unsealOf(archive, passphrase))
  const { own, any } = wanted === null ? await newestSnapshots(archive, config, { now: clock.now() }) : { own: wanted }
  const snapshot = own ?? any
  if (snapshot === undefined) throw new OperatorError(`there is no backup in ${destination}`)
  const folder = await mkdtemp(join(config.dataDir, FOLDER_PREFIX))
  const discard = () => rm(folder, { recursive: true, force: true })
  try {
    const path = join(folder, 'backup.db')
    await parts.fetchDatabase(snapshot, path)
    const db = await openDatabase({ databaseUrl: path })
    // The backup may be from an earlier version.
    await migrate(db, migrations, clock.now())
    return {
      snapshot,
      reader: db,
      blobs: parts.blob,
      async [Symbol.asyncDispose]() {
        await db.close()
        await discard()
      },
    }
  } catch (error) {
    await discard()
    throw inDatabaseWords(error, folder)
  }
}
