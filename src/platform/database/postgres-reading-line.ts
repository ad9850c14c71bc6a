/**
 * A connection for single reads and short series of them. It is opened when it is first needed. Whatever answers on it,
 * then and each time it is opened again, is compared with what the node knows before it is read from: it may be another
 * copy than the one that other connections lead to.
 */
import type { ReservedSQL, SQL } from 'bun'
import { OperatorError } from '../../base/operator-error.ts'
import { DatabaseUnavailable } from './database.ts'
import { isStandby } from './postgres-faults.ts'
import { unreachable, type PostgresHistory } from './postgres-history.ts'
import { readerOn, send, statementOf } from './postgres-statements.ts'
import type { Waits } from './postgres-waits.ts'
import { SupervisedPool, type Connect } from './supervised-pool.ts'

/** A statement, and the pause between two of a snapshot. PostgreSQL ends what takes longer. */
export const readerSettings = { statement_timeout: 20_000, idle_in_transaction_session_timeout: 300_000 }
/** More than the longest statement. */
export const SILENCE_MILLIS = 30_000
/** Longest wait for a connection of its own. */
const RESERVE_MILLIS = 10_000

export class ReadingLine {
  /** The driver would send a read along on a connection of a pool that is busy with a slow read. */
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
      // For a read that waits behind a snapshot, the driver opens the connection again, and sends the read at once.
      trusts: () => this.#isCompared,
    })
  }

  /** Whether it is open, and what answers was compared. */
  get isCompared(): boolean {
    return this.#isCompared
  }

  /** Opens the connection unless it is open. */
  open(): Promise<void> {
    if (this.#isCompared) return Promise.resolve()
    return (this.#opening ??= this.reserve()
      .then((connection) => connection.release())
      .finally(() => (this.#opening = null)))
  }

  /** The connection for its caller alone, compared. */
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
