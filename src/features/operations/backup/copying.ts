/**
 * Copies a stopped server: its database, its blobs, or both, to databases and storages of either kind.
 *
 * The order is that of a restore: copy, verify everything, continue the event log above anything that a relay may have
 * seen, and only then let servers use it. This module has the steps before and after verification, which the command
 * runs in a context of the target. Until the end, the target's database carries a mark that keeps servers from
 * starting. A copy that was interrupted starts over, but keeps the blobs that it has copied.
 */
import { existsSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { inWords, OperatorError } from '../../../base/operator-error.ts'
import type { Config } from '../../../platform/configuration/config.ts'
import { tablesOf } from '../../../platform/database/catalog.ts'
import type { Database } from '../../../platform/database/database.ts'
import { migrations } from '../../../platform/database/embedded-migrations.ts'
import { isCopyMarked, markCopy, migrate, unmarkCopy } from '../../../platform/database/migrations.ts'
import { inDatabaseWords } from '../../../platform/database/database-words.ts'
import { openDatabase, requireDatabase, withDatabase } from '../../../platform/database/open-database.ts'
import { isPostgresUrl, withoutPassword } from '../../../platform/database/database-url.ts'
import { isDatabaseThere } from '../../../platform/database/sqlite.ts'
import { databaseFiles, makeDataDirectory, openData, tracesOf } from '../../../platform/files/data-directory.ts'
import { lockDirectory } from '../../../platform/files/directory-lock.ts'
import { systemClock } from '../../../platform/running/clock.ts'
import type { Log } from '../../../platform/running/log.ts'
import { masterKeyFault, masterKeyFile, secretsQuery, writeKeyFile } from '../../../platform/secrets/vault.ts'
import { hasBlobs, openStorageOf, ownedAmong, type BlobStorage } from '../../data/blobs/blobs.ts'
import { numberRest } from '../../data/firehose/firehose.ts'
import { rawParts } from '../../data/repo/repo.ts'
import { copyBlobs, type BlobCopies } from './blob-copy.ts'
import { requireEmpty } from './restoring.ts'
import { copyTables, SourceFault } from './table-copy.ts'

/** Names of objects in the target storage that are examined to tell whose storage it is. */
const LOOKED_AT = 100

export interface Copying {
  from: Config
  to: Config
  log: Log
  /** Called now and then with the progress so far. */
  onProgress(what: string): void
}

export interface Copied {
  /** Rows of the database; null if it stays where it is. */
  rows: number | null
  /** Null if blobs stay where they are. */
  blobs: BlobCopies | null
}

const hasOtherDatabase = ({ from, to }: Pick<Copying, 'from' | 'to'>): boolean => from.databaseUrl !== to.databaseUrl

/**
 * Run `work` while no server can use the data directories of source and target. Throws `OperatorError` if a server
 * does.
 */
export async function whileStopped<T>({ from, to }: Pick<Copying, 'from' | 'to'>, work: () => Promise<T>): Promise<T> {
  requireDatabase(from.databaseUrl)
  makeDataDirectory(from)
  makeDataDirectory(to, from.dataDir === to.dataDir ? 'data_dir' : '--to')
  return whileLocked([from, to], work)
}

async function whileLocked<T>(configs: readonly Config[], work: () => Promise<T>): Promise<T> {
  const unlocks: (() => void)[] = []
  try {
    for (const dir of new Set(configs.map(({ dataDir }) => resolve(dataDir)))) unlocks.push(lockDirectory(dir))
    return await work()
  } finally {
    for (const unlock of unlocks) unlock()
  }
}

/**
 * Copy whichever of database and blobs has another place at the target. Throws `OperatorError` if a server uses the
 * source, if the target is not empty, or if it cannot hold what the source has. Missing blobs are no error: the result
 * lists them.
 */
export async function copyServer(copying: Copying): Promise<Copied> {
  const { from, to, log } = copying
  const source = await openData(from, { log, now: systemClock.now(), isLocked: true, mustExist: true })
  try {
    await requireMasterKey(source.db, from)
    await numberRest(source.db, systemClock.now())
    const [storage, other] = [from, to].map((config) => openStorageOf(config, { clock: systemClock, log })) as [
      BlobStorage,
      BlobStorage,
    ]
    const isSameStorage = storage.place === other.place
    if (!isSameStorage) {
      await requireBlobs(source.db, storage)
      await prepareStorage(source.db, other)
    }
    const rows = hasOtherDatabase(copying) ? await copyDatabase(source.db, copying) : null
    placeMasterKey(from, to)
    const blobs = isSameStorage ? null : await copyBlobs(source.db, storage, other, everyThousand(copying, 'blobs'))
    return { rows, blobs }
  } catch (error) {
    throw inDatabaseWords(error, from.databaseUrl)
  } finally {
    await source.close()
  }
}

/** Throws `OperatorError` if the master key does not fit the source: the target could not read what was copied. */
async function requireMasterKey(source: Database, from: Config): Promise<void> {
  const secrets = await source.all<{ wrapped: string }>(secretsQuery)
  const fault = masterKeyFault(
    from,
    secrets.map(({ wrapped }) => wrapped),
  )
  if (fault !== null) throw inWords(fault)
}

/** Throws `OperatorError` if all blobs are missing: the storage is another one, or was not mounted. */
async function requireBlobs(source: Database, storage: BlobStorage): Promise<void> {
  if (!(await hasBlobs(source)) || (await storage.isThere())) return
  throw new OperatorError(
    storage.isShared
      ? `the database lists blobs, but ${storage.place} is empty: name the bucket and prefix that hold them`
      : `the database lists blobs, but ${storage.place} is missing: mount or restore it, or create it to copy without them`,
  )
}

async function copyDatabase(source: Database, copying: Copying): Promise<number> {
  const { databaseUrl } = copying.to
  const target = await emptyDatabase(copying).catch((error: unknown) => {
    throw inDatabaseWords(error, databaseUrl)
  })
  try {
    await migrate(target, migrations, systemClock.now(), { isCopyTarget: true })
    const tell = new Map<string, (count: number) => void>()
    const rows = await copyTables(source, target, (table, rows) => {
      if (!tell.has(table)) tell.set(table, everyThousand(copying, `rows of ${table}`))
      tell.get(table)!(rows)
    })
    await rawParts.setLargeRecordsAside(target)
    return rows
  } catch (error) {
    throw error instanceof SourceFault ? error.cause : inDatabaseWords(error, databaseUrl)
  } finally {
    await target.close()
  }
}

/** Calls `onProgress` when a count has passed another ten thousand. */
function everyThousand({ onProgress }: Copying, what: string): (count: number) => void {
  let told = 0
  return (count) => {
    if (count < told + 10_000) return
    told = count
    onProgress(`${count} ${what}`)
  }
}

/**
 * Run `work`, which restores a database, while no other process can use the data directory: another restore would
 * replace what this one has fetched. Throws `OperatorError` if one uses it, or if the database is not empty.
 */
export async function whileRestoring<T>(config: Config, work: () => Promise<T>): Promise<T> {
  const { databaseUrl } = config
  if (isPostgresUrl(databaseUrl))
    await withDatabase({ databaseUrl, access: 'exclusive' }, (db) => requireEmptyOrUnfinished(db, databaseUrl))
  else requireEmpty(config)
  makeDataDirectory(config)
  return whileLocked([config], work)
}

/** Throws `OperatorError` if the database holds anything but an interrupted copy. */
async function requireEmptyOrUnfinished(database: Database, databaseUrl: string): Promise<void> {
  const tables = await tablesOf(database)
  if (tables.size === 0 || (tables.has('schema_migration') && (await isCopyMarked(database)))) return
  throw new OperatorError(`the database ${withoutPassword(databaseUrl)} is not empty: a copy needs an empty one`)
}

/** Opens the target's database, which is empty but for the mark of a copy. */
async function emptyDatabase({ from, to }: Copying): Promise<Database> {
  const files = databaseFiles(to.databaseUrl)
  const isThere = files.length === 0 || isDatabaseThere(files[0]!)
  const traces = resolve(from.dataDir) === resolve(to.dataDir) ? [] : tracesOf(to)
  if (!isThere && traces.length > 0)
    throw new OperatorError(`${to.dataDir} is not empty (${traces.join(', ')}): a copy needs an empty folder`)
  const database = await openDatabase({ databaseUrl: to.databaseUrl, access: 'exclusive' })
  try {
    await requireEmptyOrUnfinished(database, to.databaseUrl)
    await markCopy(database, systemClock.now())
    return database
  } catch (error) {
    await database.close()
    throw error
  }
}

/** Throws `OperatorError` if the storage does not work, or holds anything but blobs of this database. */
async function prepareStorage(source: Database, storage: BlobStorage): Promise<void> {
  await storage.prepare({ mustReach: true })
  for await (const names of storage.list(LOOKED_AT)) {
    const known = await ownedAmong(source, names)
    const foreign = names.find((name) => !known.has(name))
    if (foreign !== undefined)
      throw new OperatorError(`${storage.place} is not empty: it holds ${foreign}, which is not a blob of this server`)
    return
  }
}

/** Copy the master key that the server has generated. Never overwrites another one. */
function placeMasterKey(from: Config, to: Config): void {
  const [source, target] = [masterKeyFile(from.dataDir), masterKeyFile(to.dataDir)]
  if (from.signingKeyMasterKey !== null || source === target || !existsSync(source)) return
  const key = readFileSync(source)
  if (existsSync(target) && !readFileSync(target).equals(key))
    throw new OperatorError(`${target} holds a different key`)
  writeKeyFile(target, key)
}

/** Let servers use the target's database. Call it once everything is verified. */
export const releaseTarget = ({ to: { databaseUrl } }: Pick<Copying, 'to'>): Promise<void> =>
  withDatabase({ databaseUrl, access: 'exclusive' }, unmarkCopy)
