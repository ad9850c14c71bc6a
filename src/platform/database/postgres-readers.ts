/** Reads of committed data on PostgreSQL, on pools of connections. A read whose connection was lost is made again. */
import type { ReservedSQL } from 'bun'
import { setTimeout as pause } from 'node:timers/promises'
import { DatabaseUnavailable, type DatabaseCounters, type Reader, type Sql } from './database.ts'
import { faultOf, isLost, isRefusedByStandby, standbyFound } from './postgres-faults.ts'
import type { PostgresHistory } from './postgres-history.ts'
import { readerSettings, ReadingLine, reserved, SILENCE_MILLIS } from './postgres-reading-line.ts'
import { SupervisedPool, type Connect } from './supervised-pool.ts'
import {
  allOf,
  commands,
  firstOf,
  readerOn,
  send,
  statementOf,
  type Rows,
  type Statement,
} from './postgres-statements.ts'
import type { Waits } from './postgres-waits.ts'
import { outsideRequests, resumed } from '../running/request-scope.ts'

/**
 * Connections for single reads. Those that wait for the same connection are sent together, which takes fewer round
 * trips, and less time on both sides, than a connection for each. The second is opened once a read has made others
 * wait.
 */
const LINES = 2
/** Most single reads that are sent together. PostgreSQL may begin with them while others are still being prepared. */
const MAX_TOGETHER = 16
/** Connections for long reads, each of which sees one state of the database. */
const SNAPSHOT_CONNECTIONS = 4
/** Once the oldest read on a connection has waited this much longer than that on another, new reads go to the other. */
const LATE_MILLIS = 5
/** Between attempts to open another connection. */
const OPEN_AGAIN_MILLIS = 1000
/** Once every connection has kept a read waiting for this long, new reads take connections for long reads. */
const SLOW_MILLIS = 100
/** Most single reads that wait for an answer. */
const MAX_READS = 10_000
/** Between attempts at a read while connections are being lost. */
const PAUSE_MILLIS = 50

export interface ReadersOptions {
  counters: DatabaseCounters
  history: PostgresHistory
  waits: Waits
}

/** A read that is sent at the end of the turn of the event loop. */
interface Gathered {
  statement: Statement
  resolve(rows: Promise<Rows>): void
}

export class PostgresReaders implements Reader {
  readonly #lines: readonly ReadingLine[]
  readonly #snapshotPool: SupervisedPool
  #gathered: Gathered[] = []
  #isOpening = false
  /** Reads that wait for a connection to open. */
  #unopened = 0
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
    this.#lines = Array.from({ length: LINES }, () => new ReadingLine(connect, options))
    this.#snapshotPool = new SupervisedPool({
      // A connection that is opened later may lead to another copy than the older ones, which are still open.
      open: (onclose) =>
        connect(SNAPSHOT_CONNECTIONS, {
          connection: readerSettings,
          onclose,
          onconnect: () => history.doubt(),
        }),
      silenceMillis: SILENCE_MILLIS,
      lastAnswersMillis: waits.lastAnswersMillis,
      onEnd: () => history.doubt(),
    })
  }

  get pools(): SupervisedPool[] {
    return [...this.#lines.map(({ pool }) => pool), this.#snapshotPool]
  }

  /** The connection on which a new read waits least; null if that is a connection for long reads. */
  #quickest(): ReadingLine | null {
    const open = this.#lines.filter(({ isCompared }) => isCompared)
    if (open.length === 0) return this.#lines[0]!
    const quickest = open.reduce((best, other) => (isQuicker(other.pool, best.pool) ? other : best))
    if (open.length < LINES && !this.#isOpening) {
      this.#isOpening = true
      void outsideRequests(() => this.#openIfLate()).finally(() => (this.#isOpening = false))
    }
    return quickest.pool.waitingMillis > SLOW_MILLIS && this.#snapshots < SNAPSHOT_CONNECTIONS ? null : quickest
  }

  /** Opens another connection if reads wait for long. Those that wait already keep their places. */
  async #openIfLate(): Promise<void> {
    await pause(LATE_MILLIS, undefined, { ref: false })
    const isLate = this.#lines.every(({ isCompared, pool }) => !isCompared || pool.waitingMillis >= LATE_MILLIS)
    if (this.#isClosed || !isLate) return
    try {
      await this.#lines.find(({ isCompared }) => !isCompared)?.open()
    } catch {
      // PostgreSQL may have no connection left.
      await pause(OPEN_AGAIN_MILLIS, undefined, { ref: false })
    }
  }

  readonly all = <Row>(query: Sql): Promise<Row[]> => this.#read(query, allOf<Row>)
  readonly get = <Row>(query: Sql): Promise<Row | null> => this.#read(query, firstOf<Row>)

  /** Most reads succeed at once, so this is not an `async` function: resuming one costs part of a microsecond. */
  #read<T>(query: Sql, resultOf: (rows: Rows) => T): Promise<T> {
    const { history, counters, waits } = this.options
    let statement: Statement
    try {
      statement = statementOf(query)
      if (this.#reads >= MAX_READS) throw new DatabaseUnavailable('too many reads are waiting')
    } catch (error) {
      return Promise.reject(error as Error)
    }
    counters.statements++
    const end = performance.now() + waits.readMillis
    const again = (until = end) => this.#persistently(statement, until).then(resultOf)
    if (history.isDoubtful) return again()
    return this.#send(statement).then(
      (rows) => {
        // The database has answered, so the time so far is no sign of an outage: this process may have been busy.
        if (history.isDoubtful) return again(performance.now() + waits.readMillis)
        resumed()
        return resultOf(rows)
      },
      (error: unknown) => this.#pauseAfter(error, end).then(() => again()),
    )
  }

  async #persistently(statement: Statement, end: number): Promise<Rows> {
    const { history } = this.options
    for (;;) {
      try {
        if (history.isDoubtful) await history.certain(end - performance.now())
        const rows = await this.#ask(this.#quickest(), statement)
        if (history.isDoubtful) continue
        resumed()
        return rows
      } catch (error) {
        await this.#pauseAfter(error, end)
      }
    }
  }

  /** Pauses before another try. Throws the error if `end` has passed, or if another try would not help. */
  async #pauseAfter(error: unknown, end: number): Promise<void> {
    if (this.#isClosed || !isLost(error) || performance.now() > end) throw faultOf(error)
    await pause(PAUSE_MILLIS)
  }

  /**
   * The driver writes to the socket after each callback of the event loop, such as that of a request. So reads that
   * come while all connections are busy are gathered until the end of the turn, and written together.
   */
  #send(statement: Statement): Promise<Rows> {
    const idle = this.#lines.find(({ isCompared, pool }) => isCompared && pool.outstanding === 0)
    if (idle !== undefined && this.#gathered.length === 0) return idle.pool.ask(statement)
    const { promise, resolve } = Promise.withResolvers<Rows>()
    this.#gathered.push({ statement, resolve })
    if (this.#gathered.length === 1) outsideRequests(() => setImmediate(() => this.#sendGathered()))
    else if (this.#gathered.length === MAX_TOGETHER) this.#sendGathered()
    return promise
  }

  #sendGathered(): void {
    const gathered = this.#gathered
    if (gathered.length === 0) return
    this.#gathered = []
    const line = this.#quickest()
    for (const { statement, resolve } of gathered) resolve(this.#ask(line, statement))
  }

  #ask(line: ReadingLine | null, statement: Statement): Promise<Rows> {
    if (line?.isCompared) return line.pool.ask(statement)
    if (line !== null) {
      this.#unopened++
      const opened = line.open().finally(() => this.#unopened--)
      return opened.then(() => line.pool.ask(statement))
    }
    // Reserved, because the driver sends the reads of a pool even on connections that are busy.
    return this.#snapshotPool.use(async (connections, question) => {
      const connection = await reserved(connections)
      question.answered()
      const begun = begin(connection, this.#snapshotPool)
      try {
        const rows = await send(connection, statement)
        await begun
        return rows
      } finally {
        end(connection)
      }
    })
  }

  shortSnapshot<T>(work: (reader: Reader) => Promise<T>): Promise<T> {
    const line = this.#quickest()
    const pool = line?.pool ?? this.#snapshotPool
    // All of `work` is one question, so that others see that the connection is taken, even between two statements.
    return pool.use((_, question) =>
      this.#steady(
        pool,
        () => this.#reserve(line),
        work,
        () => question.answered(),
      ),
    )
  }

  /**
   * While all connections are in use, new snapshots wait for the same connection, and share it: everything that they
   * must see is committed by the time that it begins.
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
      return await this.#steady(this.#snapshotPool, () => this.#reserve(null), work)
    } finally {
      this.#snapshots--
    }
  }

  #reserve(line: ReadingLine | null): Promise<ReservedSQL> {
    return line === null ? reserved(this.#snapshotPool.current) : line.reserve()
  }

  async #steady<T>(
    pool: SupervisedPool,
    reserve: () => Promise<ReservedSQL>,
    work: (reader: Reader) => Promise<T>,
    onAnswer?: () => void,
  ): Promise<T> {
    const { history, waits } = this.options
    if (history.isDoubtful) await history.certain(waits.readMillis)
    const connection = await reserve().catch((error: unknown) => {
      throw faultOf(error)
    })
    if (history.isDoubtful)
      await history.certain(waits.readMillis).catch((error: unknown) => {
        connection.release()
        throw error
      })
    const begun = begin(connection, pool)
    const reader = readerOn(async (query) => {
      const statement = statementOf(query)
      this.options.counters.statements++
      try {
        const rows = await pool.use(() => send(connection, statement))
        await begun
        onAnswer?.()
        return rows
      } catch (error) {
        throw faultOf(error)
      }
    })
    try {
      return await work(reader)
    } finally {
      end(connection)
    }
  }

  get #reads(): number {
    let reads = this.#gathered.length + this.#unopened + this.#snapshotPool.outstanding
    for (const { pool } of this.#lines) reads += pool.outstanding
    return reads
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await Promise.all(this.pools.map((pool) => pool.close()))
  }
}

/**
 * Begins a snapshot. BEGIN travels with the first statement, so await the promise before you use the answer of that
 * statement. If the connection leads to a standby, the pool is replaced, because its connections would stay open.
 */
function begin(connection: ReservedSQL, pool: SupervisedPool): Promise<unknown> {
  const { current } = pool
  const begun = commands['BEGIN SNAPSHOT'](connection).catch((error: unknown) => {
    if (!isRefusedByStandby(error)) throw error
    pool.replace(current)
    throw standbyFound(error)
  })
  begun.catch(() => undefined)
  return begun
}

/** Ends a snapshot, and gives its connection back. */
function end(connection: ReservedSQL): void {
  void commands
    .ROLLBACK(connection)
    .catch(() => undefined)
    .finally(() => connection.release())
}

function isQuicker(one: SupervisedPool, other: SupervisedPool): boolean {
  const later = one.waitingMillis - other.waitingMillis
  return Math.abs(later) > LATE_MILLIS ? later < 0 : one.outstanding < other.outstanding
}

/** A snapshot for all callers that ask before it begins. */
class SharedSnapshot {
  readonly #begun = Promise.withResolvers<Reader>()
  readonly #over = Promise.withResolvers<void>()
  #users = 0

  /** Lets all callers read. Resolves when the last of them is done. */
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
