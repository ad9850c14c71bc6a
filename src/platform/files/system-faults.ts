/** Translates errors of the system and of SQLite into sentences for the operator: where, why, and how to fix it. */
import { existsSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { type Explained, inWords } from '../../base/operator-error.ts'

interface About {
  path: string
  /** The data directory, or the folder of another configuration key. */
  folder: string
  /** The key that names the folder; `data_dir` when omitted. */
  key?: string
}

const says = (what: string, remedy: string): Explained => ({ what, remedy })

const fullDisk = ({ path }: About) => says(`the disk of ${path} is full`, 'make room')
const notFolder = ({ folder, key = 'data_dir' }: About) => says(`${folder} is not a folder`, `set ${key} to one`)

/** By error code of the system or of SQLite. */
const fileFaults: Readonly<Record<string, (about: About) => Explained>> = {
  EACCES: forbidden,
  EPERM: forbidden,
  EROFS: ({ path, key = 'data_dir' }) =>
    says(`${path} is on a file system that is mounted for reading only`, `mount it for writing, or set ${key} to another folder`),
  ENOENT: ({ path, key = 'data_dir' }) => says(`${path} cannot be made`, `set ${key} to a folder on a disk`),
  EEXIST: notFolder,
  ENOTDIR: notFolder,
  ENOSPC: fullDisk,
  SQLITE_NOTADB: ({ path }) =>
    says(
      `${path} is not a database`,
      'set database_url to the one that is meant, or move the file away and bring a backup back with "holdfast restore"',
    ),
  SQLITE_CORRUPT: ({ path }) =>
    says(`the database ${path} is damaged`, 'keep a copy of it elsewhere, and bring a backup back with "holdfast restore"'),
  SQLITE_CANTOPEN: ({ path }) =>
    says(
      `the database ${path} cannot be opened`,
      'see that its folder exists and that this user may write there, or set database_url to another place',
    ),
  SQLITE_READONLY: ({ path }) => says(`the database ${path} cannot be written`, 'see that this user may write it and its folder'),
  SQLITE_FULL: fullDisk,
  SQLITE_IOERR: ({ path }) => says(`the disk of ${path} fails`, 'look at the log of the system, and check the disk before anything else'),
}

/** Returns a fault of a file or a database in words, or null if the error code is not in the table. */
export const explain = (error: unknown, about: About): Explained | null => lookUp(error, fileFaults, about)

/** Returns the error as an `OperatorError` if its code is in the table, else the error itself. */
export const explained = (error: unknown, about: About): unknown => sentence(error, explain(error, about))

interface Listener {
  bindAddress: string
  port: number
}

const listenerFaults: Readonly<Record<string, (listener: Listener) => Explained>> = {
  EADDRINUSE: ({ bindAddress, port }) =>
    says(`port ${port} of ${bindAddress} is in use by another process`, 'stop that one, or set port (SERVICE_PORT) to another'),
  EADDRNOTAVAIL: ({ bindAddress }) =>
    says(
      `${bindAddress} is no address of this machine`,
      'set bind_address (SERVICE_BIND_ADDRESS) to one of its own, or to 0.0.0.0 for all',
    ),
  EACCES: ({ port }) =>
    says(`port ${port} is kept for root`, 'set port (SERVICE_PORT) to one from 1024 on and let the reverse proxy pass requests on to it'),
}

/** Does the same as `explained` for errors of a listener. */
export const listenFault = (error: unknown, listener: Listener): unknown => sentence(error, lookUp(error, listenerFaults, listener))

function lookUp<About>(error: unknown, table: Readonly<Record<string, (about: About) => Explained>>, about: About): Explained | null {
  const { code } = error as { code?: unknown }
  // Extended codes such as SQLITE_IOERR_WRITE count as their primary code, SQLITE_IOERR.
  return typeof code === 'string' ? (table[code.split('_').slice(0, 2).join('_')]?.(about) ?? null) : null
}

const sentence = (error: unknown, found: Explained | null): unknown => (found === null ? error : inWords(found, error))

function forbidden({ path, folder, key = 'data_dir' }: About): Explained {
  const user = process.getuid?.()
  const there = nearestExisting(path)
  const owner = statSync(there).uid
  const who = user === undefined ? 'this process' : `this process (user ${user})`
  if (!existsSync(path))
    return says(
      `${folder} cannot be made by ${who}, because ${there} belongs to ${userName(owner)}`,
      `make it and give it to that user, or set ${key} to another folder`,
    )
  if (owner === user) return says(`${path} cannot be used by its owner (user ${user})`, `"chmod -R u+rwX ${folder}" gives the access back`)
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
