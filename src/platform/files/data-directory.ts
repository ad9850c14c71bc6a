/**
 * Creates and opens the data directory and the database of the server, and keeps them private.
 *
 * A new server starts only in a directory without traces of a server. The database is created before everything else,
 * and the marker once the database is on the disk. So traces without a database are always the sign of a loss or of an
 * interrupted restore, and never of an interrupted first start.
 */
import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  existsSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import type { Millis } from '../../protocol/identifiers.ts'
import type { Config } from '../configuration/config.ts'
import type { Database } from '../database/database.ts'
import { LOCK_FILE, lockDirectory } from './directory-lock.ts'
import { networkShareOf } from './network-share.ts'
import { explained } from './system-faults.ts'
import type { Log } from '../running/log.ts'
import { tablesOf } from '../database/catalog.ts'
import { inDatabaseWords } from '../database/database-words.ts'
import { hasHistory, migrate } from '../database/migrations.ts'
import { type Explained, inWords, OperatorError } from '../../base/operator-error.ts'
import { VERSION } from '../../base/version.ts'
import { migrations } from '../database/embedded-migrations.ts'
import { openDatabase, type OpenOptions } from '../database/open-database.ts'
import { isPostgresUrl, withoutPassword } from '../database/database-url.ts'
import { isDatabaseThere, sqlitePath } from '../database/sqlite.ts'
import { masterKeyFile } from '../secrets/vault.ts'

export type DataPlace = Pick<Config, 'dataDir' | 'databaseUrl'>
/** A place in which a server, or a command that stands for it, works. */
type UsedPlace = DataPlace & Pick<Config, 'networkShareAllowed'>

const MARKER = 'holdfast.marker'
const MARKER_TEXT = `This folder holds the data of a Holdfast server. While this file is here, the server refuses to start if its database is
missing, instead of starting over as a new server.
`
/** Most foreign tables that a message names. */
const MAX_NAMED = 5
/** Prefix of the names that a running backup uses in the data directory. */
export const BACKUP_PREFIX = '.backup-'
/** Returns the path of a database that is being restored, until it is checked completely. */
export const restoringPath = ({ databaseUrl }: Pick<DataPlace, 'databaseUrl'>): string =>
  `${sqlitePath(databaseUrl)}.restoring`
export const blobsFolder = (dataDir: string): string => join(dataDir, 'blobs')

export interface OpenData {
  db: Database
  /** Number of migrations that were applied. */
  applied: number
  close(): Promise<void>
}

interface DataOptions extends Omit<OpenOptions, 'databaseUrl' | 'access'> {
  log: Log
  now: Millis
  /** Other servers may use the database too, if it is on PostgreSQL. */
  shared?: boolean
  /** The caller has locked the directory. */
  isLocked?: boolean
  /** The database is the target of a copy that the caller makes. */
  isCopyTarget?: boolean
  /**
   * A server must have used the database: a command would take any other for a sound one without accounts, and fill it.
   */
  mustExist?: boolean
}

/** Returns the paths of the database's files on this disk; empty if a PostgreSQL server holds it. */
export const databaseFiles = (databaseUrl: string): string[] =>
  isPostgresUrl(databaseUrl) ? [] : ['', '-wal', '-shm'].map((suffix) => sqlitePath(databaseUrl) + suffix)

/**
 * Lock the directory for this process, and open its database with the schema of this version. Throws `OperatorError` if
 * another process holds the lock, the database was lost, or the system refuses access.
 */
export async function openData(place: UsedPlace, options: DataOptions): Promise<OpenData> {
  makeDataDirectory(place)
  const [path] = databaseFiles(place.databaseUrl)
  const unlock = options.isLocked ? () => {} : lockDirectory(place.dataDir)
  try {
    keepPrivate(place, options.log)
    if (path !== undefined && !isDatabaseThere(path)) refuseLoss(place, existsSync(path) ? 'is empty' : 'is missing')
    const { db, applied } = await openMigrated(place, options)
    return {
      db,
      applied,
      async close() {
        await db.close()
        unlock()
      },
    }
  } catch (error) {
    unlock()
    throw explained(inDatabaseWords(error, place.databaseUrl), { path: path ?? place.dataDir, folder: place.dataDir })
  }
}

/** Whether no server has used the database yet. Changes nothing. */
export async function isUnused({ databaseUrl }: Pick<DataPlace, 'databaseUrl'>): Promise<boolean> {
  if (!isPostgresUrl(databaseUrl)) return !isDatabaseThere(sqlitePath(databaseUrl))
  const db = await openDatabase({ databaseUrl, access: 'shared' })
  try {
    return !(await hasHistory(db, await tablesOf(db)))
  } finally {
    await db.close()
  }
}

/** Open the database with the schema of this version, and join its cluster. `applied` counts the migrations. */
async function openMigrated(
  place: UsedPlace,
  { log, now, strict, shared = false, isCopyTarget = false, mustExist = false, ...options }: DataOptions,
): Promise<Pick<OpenData, 'db' | 'applied'>> {
  const { databaseUrl } = place
  const { nodeName, pace, machineNow } = options
  const access = shared ? 'shared' : 'exclusive'
  const db = await openDatabase({ databaseUrl, strict, access, nodeName, pace, machineNow })
  try {
    if (mustExist) await requireHistory(db, place)
    const applied = await migrate(db, migrations, now, {
      beforeFirst: () => refuseLoss(place, 'holds nothing'),
      isShared: shared,
      isCopyTarget,
      name: withoutPassword(databaseUrl),
    })
    await db.cluster?.join(VERSION, { isAlone: !shared })
    mark(place)
    return { db, applied: applied.length }
  } catch (error) {
    await db.close().catch((cause: unknown) => log.warn('could not close the database', { error: cause }))
    throw error
  }
}

async function requireHistory(db: Database, { databaseUrl }: DataPlace): Promise<void> {
  const tables = await tablesOf(db)
  if (await hasHistory(db, tables)) return
  const foreign = [...tables.keys()].filter((name) => name !== 'schema_migration')
  const found =
    foreign.length === 0
      ? 'is empty'
      : `is not of a server: it has other tables (${foreign.slice(0, MAX_NAMED).join(', ')})`
  throw new OperatorError(
    `the database ${withoutPassword(databaseUrl)} ${found}. Set database_url to the one that the server used`,
  )
}

/** A folder of the server that is on a network share, and the type of that share. */
export interface SharedFolder {
  path: string
  type: string
}

/** Returns the first folder of the server that is on a network share, or null. */
export function sharedFolderOf({ dataDir, databaseUrl }: DataPlace): SharedFolder | null {
  for (const path of new Set([dataDir, ...databaseFiles(databaseUrl).map((file) => dirname(file))])) {
    const type = networkShareOf(path)
    if (type !== null) return { path, type }
  }
  return null
}

export const shareFault = ({ path, type }: SharedFolder): Explained => ({
  what: `${path} is on a network share (${type}), where locks and flushes may fail and damage the database`,
  remedy:
    'set data_dir to a folder on a disk of this machine, or network_share_allowed (SERVICE_NETWORK_SHARE_ALLOWED) to true',
})

/**
 * Create the data directory if it is missing, and check that this process may use everything in it. `key` names it.
 * Throws `OperatorError` if it may not, or if the directory is on a network share and that is not allowed.
 */
export function makeDataDirectory(place: UsedPlace, key = 'data_dir'): void {
  const { dataDir, databaseUrl, networkShareAllowed } = place
  const share = networkShareAllowed ? null : sharedFolderOf(place)
  if (share !== null) throw inWords(shareFault(share))
  const attempt = (path: string, act: () => void) => {
    try {
      act()
    } catch (error) {
      throw explained(error, { path, folder: dataDir, key })
    }
  }
  attempt(dataDir, () => mkdirSync(dataDir, { recursive: true }))
  const { R_OK, W_OK, X_OK } = constants
  const [folder, file] = [R_OK | W_OK | X_OK, R_OK | W_OK]
  const needed: [path: string, access: number][] = [
    [dataDir, folder],
    ...databaseFiles(databaseUrl).flatMap((path): [string, number][] => [
      [dirname(path), folder],
      [path, file],
    ]),
    [join(dataDir, LOCK_FILE), file],
    [masterKeyFile(dataDir), R_OK],
    [blobsFolder(dataDir), folder],
    [join(blobsFolder(dataDir), '.incoming'), folder],
  ]
  for (const [path, access] of needed) if (existsSync(path)) attempt(path, () => accessSync(path, access))
}

function refuseLoss(place: DataPlace, state: string): void {
  const found = tracesOf(place)
  if (found.length === 0) return
  const cutOff = existsSync(restoringPath(place)) ? '; a restore was interrupted here' : ''
  throw new OperatorError(
    `the database ${withoutPassword(sqlitePath(place.databaseUrl))} ${state}, but a server has already used the folder (${found.join(', ')})${cutOff}: restore a backup with "holdfast restore", or start a new server in an empty folder`,
  )
}

/** Returns the names of files and folders which show that a server was here; empty if there are none. */
export function tracesOf({ dataDir, databaseUrl }: DataPlace): string[] {
  const [database, log] = databaseFiles(databaseUrl)
  const paths = [join(dataDir, MARKER), masterKeyFile(dataDir), restoringPath({ databaseUrl })].filter((path) =>
    existsSync(path),
  )
  if (database !== undefined && log !== undefined && !isDatabaseThere(database) && isDatabaseThere(log)) paths.push(log)
  paths.push(...namesIn(dataDir).filter((name) => name.startsWith(BACKUP_PREFIX)))
  if (namesIn(blobsFolder(dataDir)).some((name) => !name.startsWith('.'))) paths.push(blobsFolder(dataDir))
  return paths.map((path) => basename(path))
}

const namesIn = (dir: string): string[] => (existsSync(dir) ? readdirSync(dir) : [])

/**
 * Write the marker. Syncs the folder of the database first: the database must survive any power cut that the marker
 * does.
 */
function mark({ dataDir, databaseUrl }: DataPlace): void {
  const path = join(dataDir, MARKER)
  if (existsSync(path)) return
  for (const path of databaseFiles(databaseUrl).slice(0, 1)) syncFolder(dirname(path))
  writeFileSync(path, MARKER_TEXT, { mode: 0o600 })
}

/** Flushes a folder. Without that, the system may forget new names in it when it loses power. */
export function syncFolder(path: string): void {
  const folder = openSync(path, 'r')
  try {
    fsyncSync(folder)
  } finally {
    closeSync(folder)
  }
}

/** Names that the server creates in its folder, and `lost+found`, which a file system creates in its root. */
const ownNames = /^(?:holdfast\.|master\.key|blobs$|\.backup-|\.[\da-f-]{36}\.tmp$|lost\+found$)/
const OTHERS = 0o077

export interface Exposed {
  path: string
  /** The mode that it should have. */
  mode: number
  /** Whether it belongs to the server alone, so that no other user loses access if its mode is changed. */
  isOwn: boolean
}

/**
 * Returns the paths of the server that other users of the machine may use; empty if there are none. Blobs are reached
 * only through their folder, so only the folder is checked.
 */
export function exposedPaths({ dataDir, databaseUrl }: DataPlace): Exposed[] {
  // Without user ids, modes mean nothing.
  if (process.getuid === undefined || !existsSync(dataDir)) return []
  const files = databaseFiles(databaseUrl)
  const isOwn = (name: string) =>
    ownNames.test(name) ||
    files.some((path) => name.startsWith(basename(path)) && resolve(dirname(path)) === resolve(dataDir))
  const names = readdirSync(dataDir)
  const inside = names.filter((name) => isOwn(name) && name !== 'lost+found').map((name) => join(dataDir, name))
  const apart = files.filter((path) => existsSync(path))
  const found: Exposed[] = []
  for (const path of new Set([...inside, ...apart].map((each) => resolve(each)))) {
    // Journals and copies may vanish meanwhile.
    const stats = statSync(path, { throwIfNoEntry: false })
    const isLink = lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ?? true
    if (stats !== undefined && (stats.mode & OTHERS) !== 0)
      found.push({ path, mode: stats.isDirectory() ? 0o700 : 0o600, isOwn: !isLink })
  }
  if ((statSync(dataDir).mode & OTHERS) !== 0) found.unshift({ path: dataDir, mode: 0o700, isOwn: names.every(isOwn) })
  return found
}

/**
 * Returns the users who own files of the server, each with one path as an example. More than one user means that a
 * command was run as another user, such as root.
 */
export function ownersOf({ dataDir, databaseUrl }: DataPlace): Map<number, string> {
  const database = sqlitePath(databaseUrl)
  const blobs = blobsFolder(dataDir)
  const paths = [
    database,
    `${database}-wal`,
    `${database}-shm`,
    join(dataDir, LOCK_FILE),
    join(dataDir, MARKER),
    masterKeyFile(dataDir),
    blobs,
    ...namesIn(blobs).map((name) => join(blobs, name)),
  ]
  const owners = new Map<number, string>()
  for (const path of paths) {
    const owner = statSync(path, { throwIfNoEntry: false })?.uid
    if (owner !== undefined && !owners.has(owner)) owners.set(owner, path)
  }
  return owners
}

/**
 * Make exposed paths private, such as folders of an older version. `holdfast doctor` reports those that remain exposed.
 */
function keepPrivate(place: DataPlace, log: Log): void {
  for (const { path, mode, isOwn } of exposedPaths(place)) {
    if (!isOwn) continue
    try {
      chmodSync(path, mode)
    } catch (error) {
      log.warn("other users of this machine can access the server's files", { path, error })
    }
  }
}
