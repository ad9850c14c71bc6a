/**
 * A connection for single reads and short series of them, which is opened when it is first needed. Each time it is
 * opened, the copy of the database that answers is compared with what the node knows, before anything is read from it:
 * it may be another copy than the one that other connections lead to.
 */
import type { ReservedSQL, SQL } from 'bun'
import { OperatorError } from '../../base/operator-error.ts'
import { DatabaseUnavailable } from './database.ts'
import { isStandby } from './postgres-faults.ts'
import { unreachable, type PostgresHistory } from './postgres-history.ts'
import { readerOn, send, statementOf } from './postgres-statements.ts'
import type { Waits } from './postgres-waits.ts'
import { SupervisedPool, type Connect } from './supervised-pool.ts'

/** For a statement, and for the pause between two statements of a snapshot. PostgreSQL ends what takes longer. */
export const readerSettings = { statement_timeout: 20_000, idle_in_transaction_session_timeout: 300_000 }
/** Longer than the longest statement. */
export const SILENCE_MILLIS = 30_000
/** Longest wait for a reserved connection. */
const RESERVE_MILLIS = 10_000

export class ReadingLine {
  /** A pool of one: in a larger one, the driver may send a read on a connection that is busy with a slow read. */
  readonly pool: SupervisedPool
  #isCompared = false
  #opening: Promise<void> | null = null

  constructor(
    connect: Connect,
    readonly options: { history: PostgresHistory; waits: Waits },
  ) {
    const { history, waits } = options
    const isNew = () => (this.#isCompared = false)
    this.pool = new SupervisedPool({
      open: (onclose) => connect(1, { connection: readerSettings, onclose, onconnect: isNew }),
      silenceMillis: SILENCE_MILLIS,
      lastAnswersMillis: waits.lastAnswersMillis,
      onEnd() {
        isNew()
        history.doubt()
      },
      // When the driver reopens a lost connection, it sends waiting reads at once, before anything was compared.
      trusts: () => this.#isCompared,
    })
  }

  /** Whether the connection is open, and the copy that answers on it was compared. */
  get isCompared(): boolean {
    return this.#isCompared
  }

  /** Opens the connection, unless it is open. */
  open(): Promise<void> {
    if (this.#isCompared) return Promise.resolve()
    return (this.#opening ??= this.reserve()
      .then((connection) => connection.release())
      .finally(() => (this.#opening = null)))
  }

  /** Reserves the connection for the caller alone, once the copy that answers on it was compared. */
  async reserve(): Promise<ReservedSQL> {
    const { current } = this.pool
    const connection = await reserved(current)
    if (this.#isCompared) return connection
    try {
      await this.pool.use((_, question) =>
        this.options.history.compare(
          readerOn((query) => send(connection, statementOf(query)).finally(() => question.answered())),
        ),
      )
      this.#isCompared = current === this.pool.current
      return connection
    } catch (error) {
      connection.release()
      if (isStandby(error)) this.pool.replace(current)
      throw error instanceof OperatorError ? unreachable(error) : error
    }
  }
}

export async function reserved(pool: SQL): Promise<ReservedSQL> {
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
