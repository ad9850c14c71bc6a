/** What the system or SQLite refuses, as sentences for whoever operates the server: where, why, and what puts it right. */
import { existsSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { OperatorError } from './operator-error.ts'

interface About {
  path: string
  /** The data directory. */
  folder: string
}

const damaged = ({ path }: About) => `the database ${path} is damaged: keep a copy of it elsewhere, and bring a backup back with "holdfast restore"`
const notFolder = ({ folder }: About) => `${folder} is not a folder: set data_dir to one`

/** By what the system or SQLite calls the fault. */
const sentences: Readonly<Record<string, (about: About) => string>> = {
  EACCES: forbidden,
  EPERM: forbidden,
  EROFS: ({ path }) => `${path} is on a file system that is mounted for reading only: mount it for writing, or set data_dir to another folder`,
  EEXIST: notFolder,
  ENOTDIR: notFolder,
  ENOSPC: ({ path }) => `the disk of ${path} is full: make room`,
  SQLITE_NOTADB: ({ path }) => `${path} is not a database: set database_url to the one that is meant, or move the file away and bring a backup back with "holdfast restore"`,
  SQLITE_CORRUPT: damaged,
  SQLITE_CANTOPEN: ({ path }) => `the database ${path} cannot be opened: see that its folder exists and that this user may write there, or set database_url to another place`,
  SQLITE_READONLY: ({ path }) => `the database ${path} cannot be written: see that this user may write it and its folder`,
  SQLITE_FULL: ({ path }) => `the disk of ${path} is full: make room`,
  SQLITE_IOERR: ({ path }) => `the disk of ${path} fails: look at the log of the system, and check the disk before anything else`,
}

/** A fault of a file or a database as such a sentence, where there is one for it; otherwise the error as it is. */
export const explained = (error: unknown, about: About): unknown => inWords(error, sentences, about)

interface Listener {
  bindAddress: string
  port: number
}

const listenerSentences: Readonly<Record<string, (listener: Listener) => string>> = {
  EADDRINUSE: ({ bindAddress, port }) => `port ${port} of ${bindAddress} is in use by another process: stop that one, or set port (SERVICE_PORT) to another`,
  EADDRNOTAVAIL: ({ bindAddress }) => `${bindAddress} is no address of this machine: set bind_address (SERVICE_BIND_ADDRESS) to one of its own, or to 0.0.0.0 for all`,
  EACCES: ({ port }) => `port ${port} is kept for root: set port (SERVICE_PORT) to one from 1024 on and let the reverse proxy pass requests on to it`,
}

/** The same for a fault of listening. */
export const listenFault = (error: unknown, listener: Listener): unknown => inWords(error, listenerSentences, listener)

function inWords<About>(error: unknown, table: Readonly<Record<string, (about: About) => string>>, about: About): unknown {
  if (error instanceof OperatorError) return error
  const { code } = error as { code?: unknown }
  // SQLITE_IOERR_WRITE and the like are kinds of SQLITE_IOERR.
  const sentence = typeof code === 'string' ? table[code.split('_').slice(0, 2).join('_')] : undefined
  return sentence === undefined ? error : new OperatorError(sentence(about), { cause: error })
}

function forbidden({ path, folder }: About): string {
  const user = process.getuid?.()
  const there = nearestExisting(path)
  const owner = statSync(there).uid
  const who = user === undefined ? 'this process' : `this process (user ${user})`
  if (!existsSync(path)) return `${folder} cannot be made by ${who}, because ${there} belongs to ${nameOf(owner)}: make it and give it to that user, or set data_dir to another folder`
  if (owner === user) return `${path} cannot be used by its owner (user ${user}): "chmod -R u+rwX ${folder}" gives the access back`
  return `${path} belongs to ${nameOf(owner)} and cannot be used by ${who}: run as its owner, or give it to that user with "chown -R ${user} ${folder}"`
}

function nearestExisting(path: string): string {
  const whole = resolve(path)
  return existsSync(whole) ? whole : nearestExisting(dirname(whole))
}

const nameOf = (uid: number) => (uid === 0 ? 'root' : `user ${uid}`)
