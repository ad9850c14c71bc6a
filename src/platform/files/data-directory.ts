/**
 * The data directory and the database of its server: made, kept private, and opened.
 *
 * A new server begins only where nothing of a server is. The database is made before everything else, and the marker
 * once it is on the disk. So whatever is found without a database tells of a loss, or of a restore that was cut off,
 * and never of a first start that was.
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
import { explained } from './system-faults.ts'
import type { Log } from '../running/log.ts'
import { migrate } from '../database/migrations.ts'
import { OperatorError } from '../../base/operator-error.ts'
import { migrations } from '../database/embedded-migrations.ts'
import { openDatabase } from '../database/open-database.ts'
import { isPostgresUrl, withoutPassword } from '../database/postgres.ts'
import { isDatabaseThere, sqlitePath } from '../database/sqlite.ts'
import { masterKeyFile } from '../secrets/vault.ts'

export type DataPlace = Pick<Config, 'dataDir' | 'databaseUrl'>

const MARKER = 'holdfast.marker'
const MARKER_TEXT = `This folder holds the data of a Holdfast server. While this file is here, the server does not start without its
database, instead of beginning anew as another server.
`
/** What a running backup puts into the data directory begins so. */
export const BACKUP_PREFIX = '.backup-'
/** The name of a database that is being restored, until all of it is checked. */
export const restoringPath = ({ databaseUrl }: Pick<DataPlace, 'databaseUrl'>): string => `${sqlitePath(databaseUrl)}.restoring`
export const blobsFolder = (dataDir: string): string => join(dataDir, 'blobs')

export interface OpenData {
  db: Database
  /** How many migrations were applied. */
  applied: number
  close(): Promise<void>
}

interface OpenOptions {
  log: Log
  now: Millis
  /** As in `SqliteOptions`. */
  strict?: boolean
}

/** What the database keeps on this disk: nothing, when a server has it. */
export const databaseFiles = (databaseUrl: string): string[] =>
  isPostgresUrl(databaseUrl) ? [] : ['', '-wal', '-shm'].map((suffix) => sqlitePath(databaseUrl) + suffix)

/** Take the directory for this process, and open its database with the schema of this version. */
export async function openData(place: DataPlace, { log, now, strict }: OpenOptions): Promise<OpenData> {
  makeDataDirectory(place)
  const [path] = databaseFiles(place.databaseUrl)
  const unlock = lockDirectory(place.dataDir)
  try {
    keepPrivate(place, log)
    if (path !== undefined && !isDatabaseThere(path)) refuseLoss(place, existsSync(path) ? 'is empty' : 'is missing')
    const db = await openDatabase({ databaseUrl: place.databaseUrl, strict, exclusive: true })
    try {
      const applied = await migrate(db, migrations, now, () => refuseLoss(place, 'holds nothing'))
      mark(place)
      return {
        db,
        applied: applied.length,
        async close() {
          await db.close()
          unlock()
        },
      }
    } catch (error) {
      await db.close().catch((cause: unknown) => log.warn('the database could not be closed', { error: cause }))
      throw error
    }
  } catch (error) {
    unlock()
    throw explained(error, { path: path ?? place.dataDir, folder: place.dataDir })
  }
}

/** Have a folder in which this process may work with everything that is there. */
export function makeDataDirectory({ dataDir, databaseUrl }: DataPlace): void {
  const attempt = (path: string, act: () => void) => {
    try {
      act()
    } catch (error) {
      throw explained(error, { path, folder: dataDir })
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
  const cutOff = existsSync(restoringPath(place)) ? '; a restore was cut off here' : ''
  throw new OperatorError(
    `the database ${withoutPassword(sqlitePath(place.databaseUrl))} ${state}, but the folder is not that of a new server (${found.join(', ')})${cutOff}: bring it back with "holdfast restore" and the place of the backups, or start a new server in an empty folder`,
  )
}

/** What tells of a server that has been here. */
export function tracesOf({ dataDir, databaseUrl }: DataPlace): string[] {
  const [database, log] = databaseFiles(databaseUrl)
  const paths = [join(dataDir, MARKER), masterKeyFile(dataDir), restoringPath({ databaseUrl })].filter((path) => existsSync(path))
  if (database !== undefined && log !== undefined && !isDatabaseThere(database) && isDatabaseThere(log)) paths.push(log)
  paths.push(...namesIn(dataDir).filter((name) => name.startsWith(BACKUP_PREFIX)))
  if (namesIn(blobsFolder(dataDir)).some((name) => !name.startsWith('.'))) paths.push(blobsFolder(dataDir))
  return paths.map((path) => basename(path))
}

const namesIn = (dir: string): string[] => (existsSync(dir) ? readdirSync(dir) : [])

/** What was made before the marker has to outlive the power cut that the marker outlives. */
function mark({ dataDir, databaseUrl }: DataPlace): void {
  const path = join(dataDir, MARKER)
  if (existsSync(path)) return
  for (const path of databaseFiles(databaseUrl).slice(0, 1)) syncFolder(dirname(path))
  writeFileSync(path, MARKER_TEXT, { mode: 0o600 })
}

function syncFolder(path: string): void {
  const folder = openSync(path, 'r')
  try {
    fsyncSync(folder)
  } finally {
    closeSync(folder)
  }
}

/** What the server puts into its folder; and what a file system puts into its root. */
const ownNames = /^(?:holdfast\.|master\.key|blobs$|\.backup-|\.[\da-f-]{36}\.tmp$|lost\+found$)/
const OTHERS = 0o077

export interface Exposed {
  path: string
  /** What it should be. */
  mode: number
  /** Whether it is the server's alone, so that others do not lose what is theirs. */
  isOwn: boolean
}

/**
 * Paths of the server that others on the machine may use. Blobs are reached through their folder alone, and count as
 * one.
 */
export function exposedPaths({ dataDir, databaseUrl }: DataPlace): Exposed[] {
  // Where there are no users, modes mean nothing.
  if (process.getuid === undefined || !existsSync(dataDir)) return []
  const files = databaseFiles(databaseUrl)
  const isOwn = (name: string) =>
    ownNames.test(name) || files.some((path) => name.startsWith(basename(path)) && resolve(dirname(path)) === resolve(dataDir))
  const names = readdirSync(dataDir)
  const inside = names.filter((name) => isOwn(name) && name !== 'lost+found').map((name) => join(dataDir, name))
  const apart = files.filter((path) => existsSync(path))
  const found: Exposed[] = []
  for (const path of new Set([...inside, ...apart].map((each) => resolve(each)))) {
    // Journals and copies come and go meanwhile.
    const stats = statSync(path, { throwIfNoEntry: false })
    const isLink = lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ?? true
    if (stats !== undefined && (stats.mode & OTHERS) !== 0) found.push({ path, mode: stats.isDirectory() ? 0o700 : 0o600, isOwn: !isLink })
  }
  if ((statSync(dataDir).mode & OTHERS) !== 0) found.unshift({ path: dataDir, mode: 0o700, isOwn: names.every(isOwn) })
  return found
}

/** Who owns what the server has made: more than one user where somebody has worked here as root. By user, some path of theirs. */
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

/** Folders that an older version made, or that were made for this one, become private. What stays open the doctor tells. */
function keepPrivate(place: DataPlace, log: Log): void {
  for (const { path, mode, isOwn } of exposedPaths(place)) {
    if (!isOwn) continue
    try {
      chmodSync(path, mode)
    } catch (error) {
      log.warn('others on this machine may use what the server keeps', { path, error })
    }
  }
}
