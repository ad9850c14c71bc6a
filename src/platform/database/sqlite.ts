/**
 * The SQLite adapter: one file, one write connection behind a queue (`sqlite-writer.ts`), one read connection and
 * snapshots (`sqlite-readers.ts`).
 */
import { statSync } from 'node:fs'
import { Database as Connection } from 'bun:sqlite'
import { OperatorError } from '../../base/operator-error.ts'
import { onBehalf } from '../running/request-scope.ts'
import { sql, type Database, type DatabaseCounters } from './database.ts'
import { Snapshots, SteadyReader } from './sqlite-readers.ts'
import { Prepared, readerOf } from './sqlite-statements.ts'
import { isDiskFault, withoutWaiting, WriterQueue } from './sqlite-writer.ts'

/** `temp_store`: without it, SQLite keeps the rollback data of savepoints in a temporary file. */
const writerPragmas = [
  'journal_mode = WAL',
  'synchronous = NORMAL',
  'wal_autocheckpoint = 0',
  'foreign_keys = ON',
  'temp_store = MEMORY',
]
/** Page cache of a snapshot connection. It stays small because snapshots read each page once. */
const SNAPSHOT_CACHE_KIB = 4096
export interface SqliteOptions {
  path: string
  /**
   * For tests: enforce the contract of transactions. Each runs twice, with the first run rolled back, and fails if it
   * awaits anything but the database.
   */
  strict?: boolean
}

/** The path in `database_url`, which is a path or a `sqlite:` URL. */
export const sqlitePath = (databaseUrl: string): string => databaseUrl.replace(/^sqlite:(\/\/)?/, '')

/** An empty file does not count: SQLite creates a database in it, as it does for a missing file. */
export const isDatabaseThere = (path: string): boolean => (statSync(path, { throwIfNoEntry: false })?.size ?? 0) > 0

/**
 * Returns the path of an existing database. Throws `OperatorError` if there is none: opening it would create an empty
 * one, which a command would report as sound.
 */
export function existingSqlitePath(databaseUrl: string): string {
  const path = sqlitePath(databaseUrl)
  if (!isDatabaseThere(path)) throw new OperatorError(`there is no database at ${path}`)
  return path
}

export function openSqlite({ path, strict = false }: SqliteOptions): Database {
  const counters: DatabaseCounters = { statements: 0, rows: 0, transactions: 0, commits: 0, roundTrips: 0 }
  const writer = new Prepared(new Connection(path, { create: true, strict: true }), counters)
  for (const pragma of writerPragmas) writer.connection.run(`PRAGMA ${pragma}`)
  const reader = new SteadyReader(new Prepared(new Connection(path, { readonly: true, strict: true }), counters))
  const snapshots = new Snapshots(
    () => new Prepared(new Connection(path, { readonly: true, strict: true }), counters, SNAPSHOT_CACHE_KIB),
  )
  const queue = new WriterQueue(writer, reader, snapshots, path, strict)

  const reads = readerOf(() => queue.shown?.prepared ?? reader)

  const ended = new AbortController()
  return {
    dialect: { name: 'sqlite', beforeMigration: [], definition: (statement) => statement },
    counters: {
      get statements() {
        return counters.statements + (queue.board?.statements ?? 0)
      },
      get rows() {
        return counters.rows
      },
      get transactions() {
        return counters.transactions
      },
      get commits() {
        return counters.commits
      },
      roundTrips: 0,
    },
    cluster: null,
    ended: ended.signal,
    logFollowing: {
      begin: (position) => queue.atRest((frames) => queue.follow(frames, position)),
      async rewind(work) {
        await queue.shorten()
        return queue.atRest((frames) => {
          queue.follower?.rewind(frames)
          return work()
        })
      },
      settle: () => queue.atRest(() => {}),
      file: queue.files,
      end: () => queue.unfollow(),
      abandon: (reason) => ended.abort(reason),
      get abandoned() {
        return ended.signal.aborted ? (ended.signal.reason as OperatorError) : null
      },
    },
    threads: {
      path,
      async notify(board) {
        // Not through `atRest`, which needs a commit: a server that is stopping may be unable to write.
        if (board === null) queue.board = null
        else await queue.atRest(() => void (queue.board = board))
      },
    },
    get writeFault() {
      return queue.follower?.gate?.refusal ?? queue.fault
    },
    ...reads,
    run: (query) => queue.enter((tx) => tx.run(query)),
    transaction: (work) => queue.enter(onBehalf(work)),
    transactionOn: (_, work) => queue.enter(onBehalf(work)),
    async shortSnapshot(work) {
      if (queue.shown !== null)
        return snapshots.share(queue.shown, (shown) => (strict ? withoutWaiting(work(shown)) : work(shown)))
      reader.pin()
      try {
        return await (strict ? withoutWaiting(work(reads)) : work(reads))
      } finally {
        reader.unpin()
      }
    },
    async snapshot(work) {
      const snapshot = await queue.beginSnapshot()
      try {
        return await work(snapshot.reader)
      } finally {
        snapshots.leave(snapshot)
      }
    },
    async integrityFaults() {
      const rows = await reads.all<{ integrity_check: string }>(sql`PRAGMA integrity_check`)
      return rows.map((row) => row.integrity_check).filter((found) => found !== 'ok')
    },
    // An update that changes nothing writes no page. Setting `user_version`, which is not used, writes the first one.
    retryWriting: () => queue.enter(async (tx) => void (await tx.run(sql`PRAGMA user_version = 0`))),
    async close() {
      await queue.rest()
      await queue.follower?.onClosing()
      await queue.close()
      const { follower } = queue
      await follower?.onLastCommit()
      snapshots.close()
      queue.showNewest()
      reader.close()
      const isWhole = emptyLog(writer) && !queue.hasUnflushed
      writer.close()
      queue.log.close()
      await queue.files.close()
      follower?.onClosed(isWhole)
      queue.unfollow()
    },
  }
}

/** Copies the whole log into the database file. Returns false if the disk fails; the log then stays as it is. */
function emptyLog({ connection }: Prepared): boolean {
  try {
    connection.run('PRAGMA wal_checkpoint(TRUNCATE)')
    return true
  } catch (error) {
    if (isDiskFault(error)) return false
    throw error
  }
}
