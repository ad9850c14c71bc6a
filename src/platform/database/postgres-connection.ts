/** A connection for writing. It holds the server's lock on the database, and leaves a mark in each commit. */
import type { ReservedSQL } from 'bun'
import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { MINUTE_MILLIS } from '../../base/durations.ts'
import { endsInTime } from '../../base/in-time.ts'
import { OperatorError } from '../../base/operator-error.ts'
import { unknownOutcome } from './postgres-faults.ts'
import { unreachable, type PostgresHistory } from './postgres-history.ts'
import { SupervisedPool, type Connect, type Question } from './supervised-pool.ts'
import { readerOn, send, statementOf } from './postgres-statements.ts'
import type { Waits } from './postgres-waits.ts'
import type { DatabaseUnavailable } from './database.ts'

/** Key of the server's advisory lock: the bytes of "holdfast" without the first. */
const SERVER_LOCK = 0x6f_6c_64_66_61_73_74n
const SERVER_LOCK_TIMEOUT_SECS = 3
/** SQLSTATE `lock_not_available`. */
const LOCK_NOT_AVAILABLE = '55P03'
/** SQLSTATE `division_by_zero`. */
const DIVISION_BY_ZERO = '22012'
/** Between checks whether a COMMIT was made. */
const LOOK_MILLIS = 200

/**
 * Timeouts that PostgreSQL enforces, so that locks are released even if a node freezes, or loses its connection without
 * notice, in a transaction that all others wait for.
 */
const settingsOf = ({ lockMillis, idleTransactionMillis }: Waits) => ({
  lock_timeout: lockMillis,
  statement_timeout: MINUTE_MILLIS,
  idle_in_transaction_session_timeout: idleTransactionMillis,
})
/** Longer than the longest statement. */
const SILENCE_MILLIS = 75_000

export interface Writing {
  connection: ReservedSQL
  question: Question
  /** Null before the schema has a table of marks. */
  mark: Mark | null
}

/**
 * Tells whether a COMMIT was made. The row of the writer counts its commits. A transaction that finds another count
 * than the one that this server knows fails: the database has lost a commit.
 */
export interface Mark {
  leave(connection: ReservedSQL): Promise<unknown>
  /** Call it after the COMMIT. */
  made(): void
}

/** The only server on the database; a server that shares it with others; or a command that looks at it. */
export type Access = 'exclusive' | 'shared' | 'onlooker'

export interface WriterState {
  readonly node: string
  /** As in `PostgresOptions`. */
  readonly access: Access
  readonly history: PostgresHistory
  readonly waits: Waits
  /** Whether the schema has the table of marks. */
  hasMarks: boolean
}

/** A connection to PostgreSQL, as its server knows it. */
interface Backend {
  pid: number
  started: string
}

export class PostgresWriter {
  readonly pool: SupervisedPool
  #id = randomUUID()
  readonly #mark: Mark = {
    leave: (connection) => this.#leaveMark(connection),
    made: () => this.#commits++,
  }
  #commits = 0
  #isReady = false
  #hasRow = false
  #backend: Backend | null = null

  /** `state` is shared by the writers of a process. */
  constructor(
    connect: Connect,
    readonly state: WriterState,
  ) {
    const onconnect = () => (this.#isReady = false)
    this.pool = new SupervisedPool({
      open: (onclose) => connect(1, { connection: settingsOf(state.waits), onconnect, onclose }),
      silenceMillis: SILENCE_MILLIS,
      lastAnswersMillis: state.waits.lastAnswersMillis,
      onEnd: () => state.history.doubt(),
    })
    state.history.count(() => (this.#hasRow ? { writer: this.#id, commits: this.#commits } : null))
  }

  use<T>(work: (writing: Writing) => Promise<T>): Promise<T> {
    return this.pool.use(async (pool, question) => {
      const { ended } = this.state.history
      if (ended.aborted) throw ended.reason
      const connection = await pool.reserve()
      try {
        if (!this.#isReady) await this.#prepare(connection).finally(() => question.answered())
        if (this.state.hasMarks && !this.#hasRow) await this.#insertMark(connection).finally(() => question.answered())
        return await work({ connection, question, mark: this.#hasRow ? this.#mark : null })
      } finally {
        connection.release()
      }
    })
  }

  async #prepare(connection: ReservedSQL): Promise<void> {
    const { state } = this
    await this.#endFormer(connection)
    if (state.access !== 'onlooker')
      await this.#takeServerLock(connection, state.access === 'exclusive' ? '' : '_shared')
    await state.history.examine(readerOn((query) => send(connection, statementOf(query))))
    this.#isReady = true
  }

  /** Counts the commit in the row of this writer. Sent before COMMIT, which rolls back if the row has another count. */
  async #leaveMark(connection: ReservedSQL): Promise<void> {
    try {
      await connection.unsafe(
        'WITH left_mark AS (UPDATE commit_mark SET mark = mark + 1 WHERE writer = $1 AND mark = $2 RETURNING 1) SELECT 1 / count(*) FROM left_mark',
        [this.#id, BigInt(this.#commits)],
      )
    } catch (error) {
      if ((error as { errno?: unknown }).errno !== DIVISION_BY_ZERO) throw error
      throw unreachable(this.state.history.markMissing())
    }
  }

  /** Takes the server's lock. If another server has taken it since the connection was lost, our caches are stale. */
  async #takeServerLock(connection: ReservedSQL, suffix: string): Promise<void> {
    // A server that has just ended, or our own lost connection, may hold the lock for a moment longer.
    await connection.unsafe(`SET lock_timeout = '${SERVER_LOCK_TIMEOUT_SECS}s'`)
    try {
      await connection.unsafe(`SELECT pg_advisory_lock${suffix}(${SERVER_LOCK})`)
    } catch (error) {
      if (!isLockTimeout(error)) throw error
      throw this.state.history.end(
        new OperatorError(
          'the database is in use by another server: to share it, every server needs the same signing_key_master_key and blobs.store = "s3"',
        ),
      )
    } finally {
      await connection.unsafe('RESET lock_timeout')
    }
  }

  /** Ends the session of the former connection: if that was cut, the session may still hold locks. */
  async #endFormer(connection: ReservedSQL): Promise<void> {
    const [own, former] = ['pid = pg_backend_pid()', 'pid = $1 AND CAST(backend_start AS TEXT) = $2']
    if (this.#backend)
      await connection.unsafe(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE ${former}`, [
        this.#backend.pid,
        this.#backend.started,
      ])
    const [backend] = await connection.unsafe(
      `SELECT pid, CAST(backend_start AS TEXT) AS started FROM pg_stat_activity WHERE ${own}`,
    )
    this.#backend = backend
  }

  async #insertMark(connection: ReservedSQL): Promise<void> {
    await connection.unsafe(
      'INSERT INTO commit_mark (writer, node, mark) VALUES ($1, $2, $3) ON CONFLICT (writer) DO NOTHING',
      [this.#id, this.state.node, BigInt(this.#commits)],
    )
    this.#hasRow = true
  }

  /**
   * Returns whether a COMMIT whose answer was lost was made; once this returns, it can no longer be made. Throws
   * `DatabaseUnavailable` if that is not known by `end`, on the monotonic clock. An error of the check says nothing
   * about the COMMIT, so the check is repeated.
   */
  async wasCommitted(end: number): Promise<boolean> {
    for (;;) {
      try {
        await this.state.history.certain(Math.max(end - performance.now(), this.state.waits.settleMillis))
        return await this.use(({ connection }) => this.#settle(connection))
      } catch (error) {
        if (this.state.history.ended.aborted || performance.now() > end) throw this.#unknownOutcome(error)
        await pause(LOOK_MILLIS)
      }
    }
  }

  async #settle(connection: ReservedSQL): Promise<boolean> {
    const [before, made, refused] = [0, 1, 2].map((more) => BigInt(this.#commits + more)) as [bigint, bigint, bigint]
    // Mark the transaction as refused. If it has not ended, this waits for it; if it has committed, the mark is no
    // longer `before`.
    const { count } = await connection.unsafe('UPDATE commit_mark SET mark = $3 WHERE writer = $1 AND mark = $2', [
      this.#id,
      before,
      refused,
    ])
    const isAt = async (mark: bigint) =>
      (await connection.unsafe('SELECT 1 FROM commit_mark WHERE writer = $1 AND mark = $2', [this.#id, mark])).count ===
      1
    if (count === 0 && (await isAt(made))) {
      this.#mark.made()
      return true
    }
    // The transaction was neither committed nor marked as refused, now or by an earlier attempt whose answer was lost:
    // a change is missing.
    if (count === 0 && !(await isAt(refused))) throw unreachable(this.state.history.markMissing())
    this.#commits += 2
    return false
  }

  /** Begins a new row of marks: what the old one counts is unknown, so it says nothing about the next transaction. */
  #unknownOutcome(cause: unknown): DatabaseUnavailable {
    this.#id = randomUUID()
    this.#commits = 0
    this.#hasRow = false
    return unknownOutcome(cause)
  }

  /** Releases the server's lock at once, instead of when PostgreSQL notices that the connection is gone. */
  async close(): Promise<void> {
    if (this.#isReady) {
      const { current: pool } = this.pool
      const forget = this.#hasRow
        ? pool.unsafe('DELETE FROM commit_mark WHERE writer = $1', [this.#id])
        : Promise.resolve()
      await endsInTime(
        forget.finally(() => pool.unsafe('SELECT pg_advisory_unlock_all()')),
        this.state.waits.closeMillis,
      )
    }
    await this.pool.close()
  }
}

const isLockTimeout = (error: unknown): boolean => (error as { errno?: unknown }).errno === LOCK_NOT_AVAILABLE
