/**
 * One BEGIN … COMMIT on PostgreSQL, which several transactions share.
 *
 * Round trips cost more than statements, so statements that need no results of each other are sent together: BEGIN, the
 * locks and the first statement of the first member; the mark and COMMIT.
 *
 * Members run without savepoints at first. A member that fails before it has changed anything is left out. If one fails
 * later, the group is rolled back and runs again with savepoints, so that only that member is undone.
 */
import type { ReservedSQL } from 'bun'
import { WriteConflict, type DatabaseCounters, type Sql, type Tx } from './database.ts'
import { isAborted, isConflict, isLost, unknownOutcome } from './postgres-faults.ts'
import type { Mark } from './postgres-connection.ts'
import type { Question } from './supervised-pool.ts'
import { commands, readerOn, send, statementOf, type Command, type Rows } from './postgres-statements.ts'
import { resumed } from '../running/request-scope.ts'

export type Work = (tx: Tx) => Promise<unknown>
export type Outcome = { ok: true; value: unknown } | { ok: false; error: unknown }

export interface GroupOptions {
  connection: ReservedSQL
  counters: DatabaseCounters
  /** Run each member twice, and roll back the first run. */
  strict: boolean
  hasSavepoints: boolean
  /** No other transaction can have conflicted, so a `WriteConflict` is the member's own failure. */
  isAlone: boolean
  /** Takes the locks of the group, in its first statement. */
  lock(connection: ReservedSQL): Promise<unknown>
  mark: Mark | null
  question: Question
}

/** The group has to run again with savepoints. */
export class SavepointsNeeded extends Error {}

/** The connection was lost during COMMIT. */
export class CommitInterrupted extends Error {
  constructor(
    /** Call it if it turns out that the COMMIT was made. */
    readonly committed: () => Outcome[],
    cause: unknown,
  ) {
    super('the connection was lost during COMMIT', { cause })
  }
}

type Counted = Pick<DatabaseCounters, 'statements' | 'rows' | 'transactions'>
const nothingCounted: Counted = { statements: 0, rows: 0, transactions: 0 }

export class Group {
  readonly #tx: Tx
  #afterCommit: (() => void)[] = []
  /** The first error of a statement of the present member, after which PostgreSQL refuses all others. */
  #fault: unknown = null
  #memberHasWritten = false
  #hasWritten = false
  /** The present member failed after it had changed something, and there is no savepoint to return to. */
  #isDoomed = false
  #outstanding = 0
  readonly #counted: Counted = { ...nothingCounted }

  constructor(readonly options: GroupOptions) {
    const follow = (query: Sql) => this.#follow(query)
    this.#tx = {
      ...readerOn(follow),
      run: async (query) => {
        const { count } = await follow(query)
        this.#count('rows', count)
        return count
      },
      afterCommit: (act) => void this.#afterCommit.push(act),
      // Every statement waits for its answer, which gives others their turn.
      turn: () => Promise.resolve(),
      known: new Map(),
    }
  }

  /**
   * Returns the outcome of each member, once the COMMIT is durable. Throws if the whole group fails. After
   * `CommitInterrupted`, or `OutcomeUnknown` without a mark, it may be committed; after any other error, it is not.
   */
  async run(members: readonly Work[]): Promise<Outcome[]> {
    const begun = Promise.all([this.#command('BEGIN'), this.#ask(this.options.lock)])
    begun.catch(() => undefined)
    const outcomes: Outcome[] = []
    try {
      for (const work of members) {
        // If BEGIN or the locks failed, this throws their error: it is the reason why the member failed.
        const outcome = await this.#member(work).finally(() => begun)
        outcomes.push(outcome)
        if (!this.#isDoomed) continue
        if (members.length > 1) throw new SavepointsNeeded()
      }
      if (!this.#isDoomed) await this.#commit(outcomes)
    } catch (error) {
      if (error instanceof CommitInterrupted) throw error
      await this.#rollBack()
      this.#uncount(nothingCounted)
      throw error
    }
    if (this.#isDoomed) await this.#rollBack()
    return outcomes
  }

  /** A lost connection has nothing to roll back. */
  async #rollBack(): Promise<void> {
    await this.#command('ROLLBACK').catch(() => undefined)
  }

  async #commit(outcomes: Outcome[]): Promise<void> {
    const mark = this.#hasWritten ? this.options.mark : null
    try {
      const marked = mark && this.#ask((connection) => mark.leave(connection))
      const [done] = await Promise.all([this.#command('COMMIT'), marked])
      // After a failed statement, PostgreSQL answers COMMIT with ROLLBACK, and reports no error.
      if (done.command !== 'COMMIT') throw new Error('the transaction was rolled back')
    } catch (error) {
      if (!isLost(error) || !this.#hasWritten) throw error
      throw mark === null ? unknownOutcome(error) : new CommitInterrupted(() => this.#committed(outcomes), error)
    }
    mark?.made()
    this.#committed(outcomes)
  }

  #committed(outcomes: Outcome[]): Outcome[] {
    this.options.counters.commits++
    // Called before the members continue. An error in one becomes an unhandled rejection; it ends neither the queue nor
    // the process.
    for (const act of this.#afterCommit) void Promise.resolve().then(act)
    return outcomes
  }

  async #member(work: Work): Promise<Outcome> {
    const { hasSavepoints, isAlone, strict } = this.options
    if (strict) await this.#rehearse(work)
    if (hasSavepoints) this.#send('SAVEPOINT')
    this.#fault = null
    this.#memberHasWritten = false
    const others = this.#afterCommit.length
    const outcome = await this.#attempt(work)
    if (this.#fault !== null && (isLost(this.#fault) || isConflict(this.#fault))) throw this.#fault
    if (!outcome.ok && outcome.error instanceof WriteConflict && !isAlone) throw outcome.error
    const isSound = this.#fault === null && (outcome.ok || !this.#memberHasWritten)
    if (!isSound || !outcome.ok) this.#afterCommit.length = others
    if (hasSavepoints) {
      if (!isSound) this.#send('ROLLBACK TO')
      this.#send('RELEASE')
    } else this.#isDoomed = !isSound
    // Work that continues after a failed statement fails too, and the first failure is the cause of the others.
    const isResult = this.#fault === null || (!outcome.ok && !isAborted(outcome.error))
    return isResult ? outcome : { ok: false, error: this.#fault }
  }

  /** Runs the work and rolls it back. The outcome is ignored: the second run must have the same one. */
  async #rehearse(work: Work): Promise<void> {
    const counted = { ...this.#counted }
    const others = this.#afterCommit.length
    this.#send('SAVEPOINT')
    await this.#attempt(work)
    await this.#command('ROLLBACK TO')
    this.#send('RELEASE')
    this.#afterCommit.length = others
    this.#uncount(counted)
  }

  #count(name: keyof Counted, by: number): void {
    this.#counted[name] += by
    this.options.counters[name] += by
  }

  /** Rolled-back attempts that run again are not counted. */
  #uncount(before: Counted): void {
    for (const name of ['statements', 'rows', 'transactions'] as const)
      this.#count(name, before[name] - this.#counted[name])
  }

  async #attempt(work: Work): Promise<Outcome> {
    this.#count('transactions', 1)
    // Transactions of other groups and nodes change rows meanwhile.
    this.#tx.known.clear()
    try {
      return { ok: true, value: await work(this.#tx) }
    } catch (error) {
      return { ok: false, error }
    }
  }

  async #follow(query: Sql): Promise<Rows> {
    const statement = statementOf(query)
    if (!statement.isRead) this.#memberHasWritten = this.#hasWritten = true
    this.#count('statements', 1)
    try {
      const rows = await this.#ask((connection) => send(connection, statement))
      resumed()
      return rows
    } catch (error) {
      this.#fault ??= error
      throw error
    }
  }

  #command(command: Command): Promise<Rows> {
    return this.#ask(commands[command])
  }

  /** Does not wait. If it fails, so does the next statement. */
  #send(command: Command): void {
    this.#command(command).catch(() => undefined)
  }

  /** Statements that are sent while another one is on its way share its round trip. */
  async #ask<T>(question: (connection: ReservedSQL) => Promise<T>): Promise<T> {
    if (this.#outstanding++ === 0) this.options.counters.roundTrips++
    try {
      return await question(this.options.connection)
    } finally {
      this.#outstanding--
      this.options.question.answered()
    }
  }
}
