/**
 * A pool of connections that does not wait forever. A connection may be cut without a sign, and the driver would wait
 * for answers until the system gives up, after a quarter of an hour. PostgreSQL ends every statement that takes too
 * long, so an answer that is still missing after that shows that the connection is dead: the pool is closed and another
 * one opened.
 */
import type { SQL } from 'bun'
import { connectionLost } from './postgres-faults.ts'
import { send, type Rows, type Statement } from './postgres-statements.ts'

/** Opens a pool of at most `max` connections. */
export type Connect = (
  max: number,
  options?: Pick<SQL.PostgresOrMySQLOptions, 'onconnect' | 'onclose' | 'connection'>,
) => SQL

export interface SupervisedPoolOptions {
  open(onClose: () => void): SQL
  /** Longest time until an answer, in milliseconds; more than what PostgreSQL allows a statement. */
  silenceMillis: number
  /** Statements have this long to finish after the pool is closed. */
  lastAnswersMillis: number
  /** Called when a connection has ended. */
  onEnd?: () => void
  /** Whether answers may be used now. Otherwise, `ask` treats them as lost. */
  trusts?: () => boolean
}

/** Work on a connection that waits for answers. */
export class Question {
  #askedAt = performance.now()

  constructor(readonly onAnswer: () => void) {}

  /** Call it after each answer. */
  answered(): void {
    this.#askedAt = performance.now()
    this.onAnswer()
  }

  /** Milliseconds since the question was asked, or last answered. */
  get waitingMillis(): number {
    return performance.now() - this.#askedAt
  }
}

export class SupervisedPool {
  #pool: SQL
  readonly #outstanding = new Set<Question>()
  #answeredAt = -Infinity

  constructor(readonly options: SupervisedPoolOptions) {
    this.#pool = this.#open()
  }

  get current(): SQL {
    return this.#pool
  }

  get outstanding(): number {
    return this.#outstanding.size
  }

  /** How long the oldest question that is outstanding has waited; 0 if none is. */
  get waitingMillis(): number {
    for (const oldest of this.#outstanding) return oldest.waitingMillis
    return 0
  }

  async use<T>(work: (pool: SQL, question: Question) => Promise<T>): Promise<T> {
    const question = new Question(() => (this.#answeredAt = performance.now()))
    this.#outstanding.add(question)
    try {
      const result = await work(this.#pool, question)
      question.answered()
      return result
    } finally {
      this.#outstanding.delete(question)
    }
  }

  /** As `use`, for one statement. */
  ask(statement: Statement): Promise<Rows> {
    const question = new Question(() => (this.#answeredAt = performance.now()))
    this.#outstanding.add(question)
    return send(this.#pool, statement).then(
      (rows) => {
        question.answered()
        this.#outstanding.delete(question)
        if (this.options.trusts?.() === false) throw connectionLost()
        return rows
      },
      (error: unknown) => {
        this.#outstanding.delete(question)
        throw error
      },
    )
  }

  /** Replaces the pool if an answer is overdue. Call it from time to time. */
  renewIfSilent(): void {
    const { silenceMillis } = this.options
    if (this.#outstanding.values().some(({ waitingMillis }) => waitingMillis > silenceMillis)) this.#renew()
  }

  /** Replaces the pool if the database has not answered anything for `millis`, even without pending queries. */
  renewUnlessAnswered(millis: number): void {
    if (performance.now() - this.#answeredAt > millis) this.#renew()
  }

  /** Replace a pool that leads to the wrong server. Statements that wait for their answers fail. */
  replace(wrong: SQL): void {
    if (wrong === this.#pool) this.#replace()
  }

  #renew(): void {
    this.#replace()
    this.options.onEnd?.()
  }

  #replace(): void {
    const former = this.#pool
    this.#outstanding.clear()
    this.#pool = this.#open()
    // Rejects unanswered statements at once.
    void former.close({ timeout: 0 }).catch(() => undefined)
  }

  close(): Promise<void> {
    return this.#pool.close({ timeout: this.options.lastAnswersMillis / 1000 })
  }

  #open(): SQL {
    const pool: SQL = this.options.open(() => {
      if (pool === this.#pool) this.options.onEnd?.()
    })
    return pool
  }
}
