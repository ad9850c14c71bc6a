/** Reads of committed data on PostgreSQL, on pools of connections. A read whose connection was lost is made again. */
import type { SQL } from 'bun'
import { setTimeout as pause } from 'node:timers/promises'
import { DatabaseUnavailable, type DatabaseCounters, type Reader, type Sql } from './database.ts'
import { faultOf, isLost } from './postgres-faults.ts'
import type { PostgresHistory } from './postgres-history.ts'
import { SupervisedPool, type Connect } from './supervised-pool.ts'
import { commands, readerOn, send, statementOf, type Rows, type Statement } from './postgres-statements.ts'
import type { Waits } from './postgres-waits.ts'
import { resumed } from '../running/request-scope.ts'

/**
 * Connections for single reads and short series of them. Reads that wait for the same connection are sent together,
 * which takes fewer round trips, and less time here and there, than a connection for each.
 */
const READER_CONNECTIONS = 2
/** Connections for long reads, each of which sees one state of the database. */
const SNAPSHOT_CONNECTIONS = 4
/** If the oldest read of a connection has taken this much longer than that of another, new ones go to the other. */
const LATE_MILLIS = 5
/** Once every connection has had a read for this long, new ones take connections for long reads. */
const SLOW_MILLIS = 100
/** Most single reads that wait for an answer. */
const MAX_READS = 10_000
/** Between tries of a read while connections are lost. */
const PAUSE_MILLIS = 50
/** Longest wait for a connection of its own. */
const RESERVE_MILLIS = 10_000

/** A statement, and the pause between two of a snapshot. PostgreSQL ends what takes longer. */
const settings = { statement_timeout: 20_000, idle_in_transaction_session_timeout: 300_000 }
/** More than the longest statement. */
const SILENCE_MILLIS = 30_000

export interface ReadersOptions {
  counters: DatabaseCounters
  history: PostgresHistory
  waits: Waits
}

export class PostgresReaders implements Reader {
  /** A pool for each connection: the driver would send a read along on one that is busy with a slow read. */
  readonly #single: readonly SupervisedPool[]
  readonly #snapshotPool: SupervisedPool
  readonly #reader: Reader
  /** Snapshots that have a connection, or wait for one. */
  #snapshots = 0
  /** The snapshot that waits for a connection, if there is one. */
  #coming: SharedSnapshot | null = null
  #isClosed = false

  constructor(
    connect: Connect,
    readonly options: ReadersOptions,
  ) {
    const { history, waits } = options
    const pool = (connections: number) =>
      new SupervisedPool({
        // One that is opened later may lead to another copy than the others, which have not ended yet.
        open: (onclose) => connect(connections, { connection: settings, onclose, onconnect: () => history.doubt() }),
        silenceMillis: SILENCE_MILLIS,
        lastAnswersMillis: waits.lastAnswersMillis,
        onEnd: () => history.doubt(),
      })
    this.#single = Array.from({ length: READER_CONNECTIONS }, () => pool(1))
    this.#snapshotPool = pool(SNAPSHOT_CONNECTIONS)
    this.#reader = readerOn((query) => this.#read(query))
  }

  get pools(): SupervisedPool[] {
    return [...this.#single, this.#snapshotPool]
  }

  /** Where a read that begins now waits least. */
  get #quickest(): SupervisedPool {
    const quickest = this.#single.reduce((best, other) => (isQuicker(other, best) ? other : best))
    return quickest.waitingMillis > SLOW_MILLIS && this.#snapshots < SNAPSHOT_CONNECTIONS
      ? this.#snapshotPool
      : quickest
  }

  readonly all = <Row>(query: Sql): Promise<Row[]> => this.#reader.all<Row>(query)
  readonly get = <Row>(query: Sql): Promise<Row | null> => this.#reader.get<Row>(query)

  async #read(query: Sql): Promise<Rows> {
    const { history, waits } = this.options
    const statement = statementOf(query)
    if (this.#reads >= MAX_READS) throw new DatabaseUnavailable('too many reads are waiting')
    this.options.counters.statements++
    const ask = () => this.#ask(this.#quickest, statement)
    for (const end = performance.now() + waits.readMillis; ;) {
      try {
        if (history.isDoubtful) await history.certain(end - performance.now())
        const rows = await ask()
        if (history.isDoubtful) continue
        resumed()
        return rows
      } catch (error) {
        if (this.#isClosed || !isLost(error) || performance.now() > end) throw faultOf(error)
        await pause(PAUSE_MILLIS)
      }
    }
  }

  /** The driver sends reads of a pool along on connections that are busy, so those for long reads are reserved. */
  #ask(pool: SupervisedPool, statement: Statement): Promise<Rows> {
    return pool.use(async (connections, question) => {
      if (pool !== this.#snapshotPool) return send(connections, statement)
      const connection = await reserved(connections)
      question.answered()
      try {
        return await send(connection, statement)
      } finally {
        connection.release()
      }
    })
  }

  shortSnapshot<T>(work: (reader: Reader) => Promise<T>): Promise<T> {
    const pool = this.#quickest
    // Others see that the connection is taken, also between two statements.
    return pool.use((_, question) => this.#steady(pool, work, () => question.answered()))
  }

  /**
   * While all connections are in use, all that come wait for the same one: whatever they must see is committed by the
   * time that it begins.
   */
  snapshot<T>(work: (reader: Reader) => Promise<T>): Promise<T> {
    if (this.#snapshots < SNAPSHOT_CONNECTIONS) return this.#long(work)
    this.#coming ??= this.#share()
    return this.#coming.use(work)
  }

  #share(): SharedSnapshot {
    const shared = new SharedSnapshot()
    const begun = () => void (this.#coming = null)
    const reading = this.#long((reader) => {
      begun()
      return shared.serve(reader)
    })
    void reading.catch((error: unknown) => {
      if (this.#coming === shared) begun()
      shared.fail(error)
    })
    return shared
  }

  async #long<T>(work: (reader: Reader) => Promise<T>): Promise<T> {
    this.#snapshots++
    try {
      return await this.#steady(this.#snapshotPool, work)
    } finally {
      this.#snapshots--
    }
  }

  async #steady<T>(pool: SupervisedPool, work: (reader: Reader) => Promise<T>, onAnswer?: () => void): Promise<T> {
    const { history, waits } = this.options
    if (history.isDoubtful) await history.certain(waits.readMillis)
    const connection = await reserved(pool.current).catch((error: unknown) => {
      throw faultOf(error)
    })
    if (history.isDoubtful)
      await history.certain(waits.readMillis).catch((error: unknown) => {
        connection.release()
        throw error
      })
    const reader = readerOn(async (query) => {
      const statement = statementOf(query)
      this.options.counters.statements++
      try {
        const rows = await pool.use(() => send(connection, statement))
        onAnswer?.()
        return rows
      } catch (error) {
        throw faultOf(error)
      }
    })
    try {
      // Sent with the first statement of the work, which fails if this does.
      commands['BEGIN SNAPSHOT'](connection).catch(() => undefined)
      return await work(reader)
    } finally {
      void commands
        .ROLLBACK(connection)
        .catch(() => undefined)
        .finally(() => connection.release())
    }
  }

  get #reads(): number {
    return this.pools.reduce((sum, { outstanding }) => sum + outstanding, 0)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await Promise.all(this.pools.map((pool) => pool.close()))
  }
}

function isQuicker(one: SupervisedPool, other: SupervisedPool): boolean {
  const later = one.waitingMillis - other.waitingMillis
  return Math.abs(later) > LATE_MILLIS ? later < 0 : one.outstanding < other.outstanding
}

/** A snapshot for all that ask before it begins. */
class SharedSnapshot {
  readonly #begun = Promise.withResolvers<Reader>()
  readonly #over = Promise.withResolvers<void>()
  #users = 0

  /** Let all that asked read. Resolves when the last of them is done. */
  serve(reader: Reader): Promise<void> {
    this.#begun.resolve(reader)
    return this.#over.promise
  }

  fail(error: unknown): void {
    this.#begun.reject(error)
  }

  async use<T>(work: (reader: Reader) => Promise<T>): Promise<T> {
    this.#users++
    try {
      return await work(await this.#begun.promise)
    } finally {
      if (--this.#users === 0) this.#over.resolve()
    }
  }
}

async function reserved(pool: SQL) {
  const waiting = new AbortController()
  const timer = setTimeout(
    () => waiting.abort(new DatabaseUnavailable('all connections of the database are in use')),
    RESERVE_MILLIS,
  )
  try {
    return await pool.reserve({ signal: waiting.signal })
  } finally {
    clearTimeout(timer)
  }
}
