/**
 * The queue of transactions on PostgreSQL, and the connections that carry them out.
 *
 * Waiting transactions form groups, each with one COMMIT. A group of transactions without locks runs alone in the whole
 * cluster. A group with locks runs beside others, but not beside one that holds the same lock. Within this process, the
 * queue sees to that, so that no connection waits for another; between processes, PostgreSQL's advisory locks do.
 * Transactions that exclude each other run in the order in which they came.
 *
 * `work` may run more than once, so a group that fails before COMMIT was sent is tried again for a while: another
 * transaction was in the way, the connection was lost, PostgreSQL restarts. If the connection is lost during COMMIT,
 * the mark that the transaction left says whether it was made.
 */
import type { ReservedSQL } from 'bun'
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises'
import { OperatorError } from '../../base/operator-error.ts'
import { outsideRequests } from '../running/request-scope.ts'
import { DatabaseUnavailable, sql, type DatabaseCounters, type Lock, type Tx, type WriteFault } from './database.ts'
import { faultOf, isConflict, isDiskFull, isDiskOutage, isLost } from './postgres-faults.ts'
import { unreachable, type PostgresHistory } from './postgres-history.ts'
import {
  CommitInterrupted,
  Group,
  SavepointsNeeded,
  type GroupOptions,
  type Outcome,
  type Work,
} from './postgres-group.ts'
import type { PostgresWriter } from './postgres-connection.ts'
import type { Waits } from './postgres-waits.ts'

/** Most transactions in one COMMIT; the bound keeps the first of them from waiting long. */
const MAX_GROUP = 64
/** Most waiting transactions. More would only wait in vain. */
const MAX_WAITING = 20_000
/** Longest pause before a transaction is tried again. */
const MAX_PAUSE_MILLIS = 250
/** After this many conflicts, a group that runs beside others runs alone. */
const MAX_CONFLICTS = 2
/** How much must be writable before the disk of the database no longer counts as full. */
const TRIAL_KIB = 4096

interface Waiting {
  work: Work
  /** Null: runs alone. */
  locks: readonly Lock[] | null
  since: number
  resolve(value: unknown): void
  reject(error: unknown): void
}

export interface WriterQueueOptions {
  writers: readonly PostgresWriter[]
  history: PostgresHistory
  counters: DatabaseCounters
  waits: Waits
  strict: boolean
  /** No other process uses the database, so transactions need no locks. */
  exclusive: boolean
}

export class WriterQueue {
  #waiting: Waiting[] = []
  readonly #idle: PostgresWriter[]
  readonly #running = new Set<Promise<void>>()
  /** Locks of the groups that run. */
  readonly #taken = new Set<Lock>()
  #isAlone = false
  #isStarting = false
  fault: WriteFault | null = null

  constructor(readonly options: WriterQueueOptions) {
    this.#idle = options.writers.toReversed()
  }

  enter<T>(work: (tx: Tx) => Promise<T>, lock?: Lock | readonly Lock[]): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    if (this.#waiting.length >= MAX_WAITING)
      return Promise.reject(new DatabaseUnavailable('too many transactions are waiting'))
    const locks = this.options.exclusive || lock === undefined ? null : typeof lock === 'string' ? [lock] : lock
    this.#waiting.push({ work, locks, since: performance.now(), resolve: resolve as (value: unknown) => void, reject })
    if (!this.#isStarting && this.#idle.length > 0) {
      this.#isStarting = true
      // Waiting one turn of the event loop lets the requests of one tick share a commit.
      void outsideRequests(() => nextTurn().then(() => this.#start()))
    }
    return promise
  }

  async close(): Promise<void> {
    while (this.#waiting.length > 0 || this.#running.size > 0) {
      await nextTurn()
      await Promise.all(this.#running)
    }
  }

  #start(): void {
    this.#isStarting = false
    while (this.#waiting.length > 0 && this.#idle.length > 0) {
      const members = this.#nextGroup()
      if (members.length === 0) return
      const writer = this.#idle.pop()!
      const locks = members[0]!.locks === null ? null : [...new Set(members.flatMap((member) => member.locks!))]
      this.#isAlone = locks === null
      for (const lock of locks ?? []) this.#taken.add(lock)
      const running = this.#carryOut(writer, members, locks).finally(() => {
        this.#running.delete(running)
        this.#isAlone = false
        for (const lock of locks ?? []) this.#taken.delete(lock)
        this.#idle.push(writer)
        this.#start()
      })
      this.#running.add(running)
    }
  }

  /** Takes from the queue the transactions that may run now, as one group; none if running ones are in the way. */
  #nextGroup(): Waiting[] {
    const waiting = this.#waiting
    if (this.#isAlone) return []
    if (waiting[0]!.locks === null) {
      if (this.#running.size > 0) return []
      const end = waiting.findIndex(({ locks }, i) => i === MAX_GROUP || locks !== null)
      return waiting.splice(0, end < 0 ? waiting.length : end)
    }
    const members: Waiting[] = []
    const passed: Waiting[] = []
    const unavailable = new Set(this.#taken)
    let i = 0
    for (; i < waiting.length && members.length < MAX_GROUP; i++) {
      const next = waiting[i]!
      if (next.locks === null) break
      if (!next.locks.some((lock) => unavailable.has(lock))) members.push(next)
      else {
        passed.push(next)
        for (const lock of next.locks) unavailable.add(lock)
      }
    }
    this.#waiting = [...passed, ...waiting.slice(i)]
    return members
  }

  async #carryOut(writer: PostgresWriter, members: readonly Waiting[], locks: readonly Lock[] | null): Promise<void> {
    try {
      const outcomes = await this.#persistently(writer, members, locks)
      this.#noteOutcomes(outcomes)
      members.forEach(({ resolve, reject }, i) => {
        const outcome = outcomes[i]!
        if (outcome.ok) resolve(outcome.value)
        else reject(faultOf(outcome.error))
      })
    } catch (error) {
      const fault = error instanceof OperatorError ? unreachable(error) : faultOf(error)
      this.#noteFault(fault)
      for (const { reject } of members) reject(fault)
      this.#giveUpOld(fault)
    }
  }

  /** Small changes may still fit on a full disk, so their success does not clear that fault: `retryWriting` does. */
  #noteOutcomes(outcomes: readonly Outcome[]): void {
    const failed = outcomes.find((outcome) => !outcome.ok && isDiskOutage(outcome.error))
    if (failed !== undefined && !failed.ok) this.#noteFault(faultOf(failed.error))
    else if (!this.#isDiskFull) this.fault = null
  }

  #noteFault(fault: unknown): void {
    this.fault = { error: fault, at: performance.now() }
  }

  get #isDiskFull(): boolean {
    return this.fault?.error instanceof DatabaseUnavailable && isDiskFull(this.fault.error.cause)
  }

  /** Tests whether the disk of the database has room, by sorting more than fits into the memory for sorts. */
  async retryWriting(): Promise<void> {
    await this.enter(async (tx) => {
      await tx.run(sql`SET LOCAL work_mem = '64kB'`)
      await tx.get(sql`
        SELECT count(*) FROM (
          SELECT repeat(md5(CAST(i AS TEXT)), 32) AS kibibyte FROM generate_series(1, ${TRIAL_KIB}) AS i ORDER BY kibibyte) AS sorted`)
      await tx.run(sql`UPDATE clock_seen SET seen_at = seen_at`)
    })
    this.fault = null
  }

  /** Rejects transactions that have waited for long already, rather than let them wait for another try. */
  #giveUpOld(fault: unknown): void {
    const isOld = ({ since }: Waiting) => performance.now() - since > this.options.waits.writeMillis
    for (const { reject } of this.#waiting.filter(isOld)) reject(fault)
    this.#waiting = this.#waiting.filter((waiting) => !isOld(waiting))
  }

  async #persistently(
    writer: PostgresWriter,
    members: readonly Waiting[],
    locks: readonly Lock[] | null,
  ): Promise<Outcome[]> {
    const { counters, strict, exclusive, history, waits } = this.options
    const works = members.map(({ work }) => work)
    const end = Math.min(...members.map(({ since }) => since)) + waits.writeMillis
    let hasSavepoints = false
    for (let conflicts = 0, tries = 0; ; tries++) {
      const isAlone = exclusive || locks === null || conflicts >= MAX_CONFLICTS
      const lock = (connection: ReservedSQL) =>
        exclusive ? Promise.resolve() : takeLocks(connection, isAlone ? null : locks)
      try {
        if (history.isDoubtful) await history.certain(end - performance.now())
        return await writer.use((writing) => {
          const options: GroupOptions = { ...writing, counters, strict, hasSavepoints, isAlone, lock }
          return new Group(options).run(works)
        })
      } catch (error) {
        if (error instanceof SavepointsNeeded) {
          hasSavepoints = true
          continue
        }
        if (error instanceof OperatorError) throw error
        if (error instanceof CommitInterrupted && (await writer.wasCommitted(end))) return error.committed()
        const isInterrupted = error instanceof CommitInterrupted || isLost(error)
        if (isInterrupted ? performance.now() > end : !isConflict(error) || ++conflicts > MAX_CONFLICTS)
          throw reasonOf(error)
        await pause(Math.random() * Math.min(MAX_PAUSE_MILLIS, 10 * 2 ** tries))
      }
    }
  }
}

/** If a COMMIT was proved not to have been made, what matters is why the connection was lost. */
const reasonOf = (error: unknown): unknown => (error instanceof CommitInterrupted ? error.cause : error)

/** Key of the lock that every transaction takes: shared, or alone. */
const CLUSTER_LOCK = 0x6f_6c_64_66_61_73_75n

/** Takes the locks in a fixed order, so that no two transactions wait for each other. */
function takeLocks(connection: ReservedSQL, locks: readonly Lock[] | null): Promise<unknown> {
  if (locks === null) return connection.unsafe('SELECT pg_advisory_xact_lock($1)', [CLUSTER_LOCK])
  return connection.unsafe(
    `SELECT pg_advisory_xact_lock_shared(${CLUSTER_LOCK}), (SELECT count(pg_advisory_xact_lock(key))
       FROM (SELECT DISTINCT hashtextextended(name, 0) AS key FROM unnest($1::text[]) AS name ORDER BY key) AS keys)`,
    [connection.array([...locks], 'TEXT')],
  )
}
