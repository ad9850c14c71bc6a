/** Translates errors of the system and of SQLite into sentences for the operator: where, why, and how to fix it. */
import { existsSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { type Explained, inWordsIfAny } from '../../base/operator-error.ts'
import { variableOf } from '../configuration/config-fields.ts'
import { storageFaultOf } from './storage-faults.ts'

interface About {
  path: string
  /** The data directory, or the folder of another configuration key. */
  folder: string
  /** The key that names the folder; `data_dir` when omitted. */
  key?: string
}

const says = (what: string, remedy: string): Explained => ({ what, remedy })

const fullDisk = ({ path }: Pick<About, 'path'>) => says(`the disk of ${path} is full`, 'free some space')
const notFolder = ({ folder, key = 'data_dir' }: About) => says(`${folder} is not a folder`, `set ${key} to a folder`)

/** By error code of the system or of SQLite. */
const fileFaults: Readonly<Record<string, (about: About) => Explained>> = {
  EACCES: forbidden,
  EPERM: forbidden,
  EROFS: ({ path, key = 'data_dir' }) =>
    says(
      `${path} is on a read-only file system`,
      `mount it for writing, or set ${key} to another folder; if systemd runs the server, "holdfast init --service" lets it write to the folders of its configuration`,
    ),
  ENOENT: ({ path, key = 'data_dir' }) => says(`${path} cannot be created`, `set ${key} to a folder on a disk`),
  EEXIST: notFolder,
  ENOTDIR: notFolder,
  ENOSPC: fullDisk,
  SQLITE_NOTADB: ({ path }) =>
    says(
      `${path} is not a database`,
      'set database_url to the right file, or move the file away and restore a backup with "holdfast restore"',
    ),
  SQLITE_CORRUPT: ({ path }) =>
    says(
      `the database ${path} is damaged`,
      'keep a copy of it elsewhere, and restore a backup with "holdfast restore"',
    ),
  SQLITE_CANTOPEN: ({ path }) =>
    says(
      `the database ${path} cannot be opened`,
      'make sure that its folder exists and that this user can write to it, or set database_url to another path',
    ),
  SQLITE_READONLY: ({ path }) =>
    says(`the database ${path} cannot be written`, 'make sure that this user can write to the file and its folder'),
  SQLITE_FULL: fullDisk,
  SQLITE_IOERR: ({ path }) =>
    says(`the disk of ${path} reports errors`, 'read the system log, and check the disk before anything else'),
}

/** Returns a fault of a file or a database in words, or null if the error code is not in the table. */
export const explain = (error: unknown, about: About): Explained | null => lookUp(error, fileFaults, about)

/** Returns the error as an `OperatorError` if its code is in the table, else the error itself. */
export const explained = (error: unknown, about: About): unknown => inWordsIfAny(explain(error, about), error)

/**
 * Returns why this user may not use a file or folder that an error names, or that its disk is full, whatever the file
 * is for; null for other errors.
 */
export function fileFault(error: unknown): Explained | null {
  const { code, path } = error as { code?: unknown; path?: unknown }
  if (typeof path !== 'string') return null
  if (storageFaultOf(error) === 'the disk is full') return fullDisk({ path })
  if (code !== 'EACCES' && code !== 'EPERM') return null
  const user = process.getuid?.()
  // To a user who may not enter a folder, nothing in it seems to exist.
  const there = nearestExisting(path)
  const owner = statSync(there).uid
  return owner === user || user === undefined
    ? says(`${path} cannot be used`, `allow it with "chmod u+rwX" on ${there}`)
    : says(
        `${there} belongs to ${userName(owner)} and cannot be used by this process (user ${user})`,
        'run the command as its owner',
      )
}

interface Listener {
  bindAddress: string
  port: number
  /** The key that sets the port; `port` when omitted. */
  key?: string
}

const portKey = (key: string) => `${key} (${variableOf(key)})`

const listenerFaults: Readonly<Record<string, (listener: Listener) => Explained>> = {
  EADDRINUSE: ({ bindAddress, port, key = 'port' }) =>
    says(
      `port ${port} of ${bindAddress} is in use by another process`,
      `stop that process, or set ${portKey(key)} to another port`,
    ),
  EADDRNOTAVAIL: ({ bindAddress }) =>
    says(
      `${bindAddress} is not an address of this machine`,
      'set bind_address (SERVICE_BIND_ADDRESS) to one of its addresses, or to 0.0.0.0 for all of them',
    ),
  EACCES: ({ port, key = 'port' }) =>
    key === 'port'
      ? says(
          `port ${port} is reserved for root`,
          'set port (SERVICE_PORT) to 1024 or above, and let the reverse proxy forward requests to it',
        )
      : says(
          `port ${port} is reserved for root`,
          `give the server the capability CAP_NET_BIND_SERVICE (systemd: AmbientCapabilities=CAP_NET_BIND_SERVICE), or set ${portKey(key)} to another port`,
        ),
}

/** Does the same as `explained` for errors of a listener. */
export const listenFault = (error: unknown, listener: Listener): unknown =>
  inWordsIfAny(lookUp(error, listenerFaults, listener), error)

function lookUp<About>(
  error: unknown,
  table: Readonly<Record<string, (about: About) => Explained>>,
  about: About,
): Explained | null {
  const { code } = error as { code?: unknown }
  // Extended codes such as SQLITE_IOERR_WRITE count as their primary code, SQLITE_IOERR.
  return typeof code === 'string' ? (table[code.split('_').slice(0, 2).join('_')]?.(about) ?? null) : null
}

function forbidden({ path, folder, key = 'data_dir' }: About): Explained {
  const user = process.getuid?.()
  const there = nearestExisting(path)
  const owner = statSync(there).uid
  const who = user === undefined ? 'this process' : `this process (user ${user})`
  if (!existsSync(path))
    return says(
      `${who} cannot create ${folder}, because ${there} belongs to ${userName(owner)}`,
      `create it and give it to that user, or set ${key} to another folder`,
    )
  if (owner === user)
    return says(
      `${path} cannot be used by its owner (user ${user})`,
      `restore the access with "chmod -R u+rwX ${folder}"`,
    )
  return says(
    `${path} belongs to ${userName(owner)} and cannot be used by ${who}`,
    `run as its owner, or give it to that user with "chown -R ${user} ${folder}"`,
  )
}

function nearestExisting(path: string): string {
  const whole = resolve(path)
  return existsSync(whole) ? whole : nearestExisting(dirname(whole))
}

export const userName = (uid: number) => (uid === 0 ? 'root' : `user ${uid}`)

/** For `catch` after an access to a file that need not exist. Throws every other error. */
export function nullWhenMissing(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT') return null
  throw error
}
