/**
 * Notices that PostgreSQL has lost changes that it had acknowledged. A promoted standby lacks the last transactions if
 * it was asynchronous, and a restored copy lacks everything since it was made. The numbers of lost events would then be
 * given to other events, and what nodes have in memory would not be what is stored.
 *
 * The row of `database_history` says which copy the nodes have agreed on. Once a node has joined, it compares what it
 * knows with the copy that answers: on each new connection that writes, with each heartbeat, and after a lost
 * connection, when it opens a connection for the comparison and reads wait for the result. It knows
 * - the identity of the copy, which a failover, a restore and an upgrade of PostgreSQL change;
 * - how many heartbeats it has sent, and how many transactions each of its connections has committed: an older copy
 *   with the same identity has fewer;
 * - what features add, such as the newest event that was sent.
 *
 * A node that finds something missing records that in the row, and ends. Numbering stops until the nodes have agreed on
 * the copy that answers.
 */
import type { SQL } from 'bun'
import { setTimeout as pause } from 'node:timers/promises'
import { DAY_MILLIS } from '../../base/durations.ts'
import { inTime } from '../../base/in-time.ts'
import { OperatorError } from '../../base/operator-error.ts'
import { outsideRequests } from '../running/request-scope.ts'
import {
  DatabaseUnavailable,
  HistoryContinued,
  HistoryLost,
  nowMillis,
  sql,
  type History,
  type Reader,
  type Sql,
  type Tx,
} from './database.ts'
import { faultOf, isLost, standbyFound } from './postgres-faults.ts'
import { readerOn, send, statementOf } from './postgres-statements.ts'
import type { Waits } from './postgres-waits.ts'

/** Rows of nodes that were killed are kept for this long. */
export const KEPT_MILLIS = DAY_MILLIS

/** Between attempts to compare. */
const RETRY_MILLIS = 250
/** How long a node that stops tries to record the reason in the database. */
const RECORD_MILLIS = 30_000
/** SQLSTATE `undefined_table`: the copy is older than the table. */
const UNDEFINED_TABLE = '42P01'

/**
 * Parts of the identity of a copy. The timeline is that of the WAL file, because `pg_control_checkpoint()` has the one
 * of the last checkpoint, which a promoted standby makes late. After a dump and restore, the table has another OID.
 */
const parts: readonly Sql[] = [
  sql`(SELECT CAST(system_identifier AS TEXT) FROM pg_control_system())`,
  sql`substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)`,
  sql`(SELECT CAST(oid AS TEXT) FROM pg_database WHERE datname = current_database())`,
  sql`CAST(CAST(CAST('database_history' AS REGCLASS) AS OID) AS TEXT)`,
]
const UNKNOWN = '-'

/** Whether two identities may belong to one copy. A role may not be permitted to read some of the parts. */
function isSameCopy(one: string, other: string): boolean {
  const others = other.split(' ')
  return one.split(' ').every((part, i) => part === others[i] || part === UNKNOWN || others[i] === UNKNOWN)
}

/** What a writing connection has committed. */
export interface CommitCount {
  writer: string
  commits: number
}

interface Row {
  generation: number
  /** The copy that the nodes have agreed on. */
  agreed: string
  lost: string | null
  keptThrough: number | null
  /** The copy that answers; null while it is a standby. */
  identity: string
}

interface Found extends Row {
  isStandby: boolean
  /** Null if this node has no row. */
  beats: number | null
  marks: Record<string, number>
  at: number
}

/** What the database says with a heartbeat. `generation` is null if there is no row. */
export type Beat = Pick<Found, 'at' | 'lost'> & { beats: number; generation: number | null }

export interface HistoryOptions {
  node: string
  /** Opens a pool of one connection. */
  open(): SQL
  waits: Waits
}

export class PostgresHistory implements History {
  readonly #ending = new AbortController()
  readonly #counts: (() => CommitCount | null)[] = []
  readonly #witnesses: ((reader: Reader) => Promise<string | null>)[] = []
  #identityNow = UNKNOWN_PART
  /** Null until the node has joined: nothing is compared before. */
  #known: Row | null = null
  /** The generation that this node is about to begin. */
  #next: number | null = null
  #beat = { beats: 0, at: 0 }
  /** Connections lost since the last comparison. */
  #doubts = 0
  #looking: Promise<void> | null = null
  #certainty = Promise.withResolvers<void>()
  /** Why the last comparison failed. */
  #fault: unknown = null
  /** Whether the database has been silent for so long that requests are refused instead of waiting. */
  isSilent = false
  #recording: Promise<void> | null = null
  /** Functions that close the connections of running comparisons. */
  readonly #own = new Set<() => void>()
  #hasLeft = false
  #isClosed = false

  constructor(readonly options: HistoryOptions) {}

  get ended(): AbortSignal {
    return this.#ending.signal
  }

  get broken(): HistoryLost | null {
    return this.#known && breakIn(this.#known)
  }

  async found(): Promise<HistoryLost | null> {
    let row: Row | null = null
    await this.#onOwnConnection(async (reader) => {
      this.#identityNow = await permittedIdentity(reader)
      row = await reader.get<Row>(sql`SELECT ${this.#columns} FROM database_history`)
    })
    return row && breakIn(row)
  }

  get generation(): number {
    return this.#known?.generation ?? 0
  }

  get keptThrough(): number | null {
    return this.#known?.keptThrough ?? null
  }

  get isDoubtful(): boolean {
    return this.#doubts > 0 || this.ended.aborted
  }

  isWhole(): Sql {
    return sql`EXISTS (SELECT 1 FROM database_history
      WHERE generation = ${this.generation} AND lost IS NULL AND agreed = ${this.#identityNow})`
  }

  witness(missing: (reader: Reader) => Promise<string | null>): void {
    this.#witnesses.push(missing)
  }

  /** Adds what a connection has committed to the comparison. `commits` returns null while that is unknown. */
  count(commits: () => CommitCount | null): void {
    this.#counts.push(commits)
  }

  /**
   * Begins to compare. The first node decides which copy is agreed on. `isAlone`: no other node's knowledge counts now.
   */
  async join(session: Reader, { isAlone }: { isAlone: boolean }): Promise<void> {
    const identityNow = await permittedIdentity(session)
    this.#identityNow = identityNow
    await session.all(
      sql`INSERT INTO database_history (id, generation, agreed) VALUES (1, 1, ${identityNow}) ON CONFLICT (id) DO NOTHING`,
    )
    if (isAlone) await session.all(sql`UPDATE database_history SET generation = generation + 1`)
    const row = (await session.get<Row>(sql`SELECT ${this.#columns} FROM database_history`))!
    this.#known = row
    // This role may now be permitted to read a part that it was not permitted to read before, or the other way round.
    if (this.broken === null && row.agreed !== row.identity)
      await session.all(sql`UPDATE database_history SET agreed = ${identityNow} WHERE generation = ${row.generation}`)
  }

  async agree(tx: Tx, keptThrough: number): Promise<boolean> {
    const { generation } = this.#known!
    this.#next = generation + 1
    const begun = await tx.get<Row>(sql`
      UPDATE database_history
      SET generation = ${this.#next}, agreed = ${this.#identityNow}, lost = NULL, kept_through = ${keptThrough}
      WHERE generation = ${generation} RETURNING ${this.#columns}`)
    const row = begun ?? (await tx.get<Row>(sql`SELECT ${this.#columns} FROM database_history`))
    tx.afterCommit(() => {
      this.#known = row
      this.#next = null
    })
    return begun !== null
  }

  get #columns(): Sql {
    return sql`generation, agreed, lost, kept_through AS "keptThrough", ${this.#identityNow} AS identity`
  }

  /** Throws if the copy behind a new connection lacks something that this node knows of. The node has ended then. */
  async examine(reader: Reader): Promise<void> {
    if (this.#known === null) return
    const beat = this.#beat
    const counts = this.#counts.map((count) => count()).filter((count) => count !== null)
    const found = await this.#find(reader)
    if (found.isStandby) throw standbyFound()
    const end = this.#verdict(found) ?? (this.#hasLeft ? null : missing(found, beat, counts))
    if (end !== null) throw this.end(end)
  }

  async #find(reader: Reader): Promise<Found> {
    const { node } = this.options
    try {
      const found = await reader.get<Found>(sql`
        SELECT generation, agreed, lost, kept_through AS "keptThrough", ${nowMillis} AS at, pg_is_in_recovery() AS "isStandby",
          CASE WHEN pg_is_in_recovery() THEN NULL ELSE ${this.#identityNow} END AS identity,
          (SELECT beats FROM node WHERE id = ${node}) AS beats,
          (SELECT coalesce(json_object_agg(writer, mark), '{}') FROM commit_mark WHERE node = ${node}) AS marks
        FROM database_history`)
      if (found !== null) return found
    } catch (error) {
      if ((error as { errno?: unknown }).errno !== UNDEFINED_TABLE) throw error
    }
    throw this.end(new HistoryLost('the copy is older than this version of the server'))
  }

  /** Returns why this node has to stop, by the row that all nodes share; null if it need not. */
  #verdict({ generation, lost, identity }: Pick<Found, 'generation' | 'lost' | 'identity'>): OperatorError | null {
    const known = this.#known!
    if (generation !== known.generation) return generation === this.#next ? null : new HistoryContinued()
    if (lost !== null && lost !== known.lost) return new HistoryLost(lost)
    return isSameCopy(known.identity, identity) ? null : otherCopy(known.identity, identity)
  }

  /** What to compare the next heartbeat with. */
  get acknowledged(): { beats: number; at: number } {
    return this.#beat
  }

  /** A heartbeat was acknowledged. `before` is what `acknowledged` was when it was sent. */
  beaten({ generation, ...found }: Beat, before: { beats: number; at: number }): void {
    if (this.#known === null) return
    const { identity } = this.#known
    const end =
      generation === null
        ? new HistoryLost('the agreement of the nodes is missing')
        : (this.#verdict({ ...found, generation, identity }) ??
          missing(found, { ...before, beats: before.beats + 1 }, []))
    if (end === null) this.#beat = found
    else this.end(end)
  }

  /** Ends the use of the database. Returns the reason: the first one that was given. */
  end(reason: OperatorError): OperatorError {
    if (!this.ended.aborted) {
      this.#ending.abort(reason)
      if (reason instanceof HistoryLost) this.#recording = outsideRequests(() => this.#record(reason.why))
    }
    return this.ended.reason as OperatorError
  }

  /** Records in the row that changes are lost, so that no node numbers events, even if it misses nothing itself. */
  async #record(why: string): Promise<void> {
    for (const end = performance.now() + RECORD_MILLIS; performance.now() < end; await pause(RETRY_MILLIS)) {
      try {
        return await this.#onOwnConnection(async (reader) => {
          await reader.all(
            sql`UPDATE database_history SET lost = ${why} WHERE generation = ${this.generation} AND lost IS NULL`,
          )
        })
      } catch (error) {
        if (!(faultOf(error) instanceof DatabaseUnavailable)) return
      }
    }
  }

  doubt(): void {
    if (this.#known === null || this.#isClosed || this.ended.aborted) return
    this.#doubts++
    this.#looking ??= outsideRequests(() => this.#look()).finally(() => (this.#looking = null))
  }

  /** Compares until no connection was lost in the meantime. */
  async #look(): Promise<void> {
    while (this.#doubts > 0 && !this.#isClosed && !this.ended.aborted) {
      const doubts = this.#doubts
      try {
        await this.#onOwnConnection((reader) => this.compare(reader))
        if (doubts === this.#doubts) this.#doubts = 0
      } catch (error) {
        this.#fault = error
        if (!this.ended.aborted) await pause(RETRY_MILLIS)
      }
    }
    this.#certainty.resolve()
    this.#certainty = Promise.withResolvers()
  }

  /** As `examine`, and with the checks that features have added. */
  async compare(reader: Reader): Promise<void> {
    if (this.#known === null) return
    await this.examine(reader)
    for (const witness of this.#witnesses) {
      const what = await witness(reader)
      if (what !== null) throw this.end(new HistoryLost(what))
    }
  }

  async #onOwnConnection(work: (reader: Reader) => Promise<void>): Promise<void> {
    const pool = this.options.open()
    const close = () => void pool.close({ timeout: 0 }).catch(() => undefined)
    const timer = setTimeout(close, this.options.waits.compareMillis)
    this.#own.add(close)
    try {
      await work(readerOn((query) => send(pool, statementOf(query))))
    } finally {
      this.#own.delete(close)
      clearTimeout(timer)
      close()
    }
  }

  /**
   * Waits until the copy that answers was compared, for `millis` at most. Throws `DatabaseUnavailable` if it was not
   * compared in time, or must not be used.
   */
  async certain(millis: number): Promise<void> {
    if (!this.isDoubtful) return
    if (!this.ended.aborted) {
      const longest = Math.max(0, this.isSilent ? Math.min(millis, this.options.waits.doubtMillis) : millis)
      await inTime(this.#certainty.promise, longest)
    }
    if (this.isDoubtful) throw unreachable(this.ended.reason ?? this.#fault)
  }

  /** The node is about to delete its rows in the database. From now on, it is no loss that they are missing. */
  leave(): void {
    this.#hasLeft = true
  }

  /** The mark of a transaction is missing: a change was lost, or others deleted the mark after this node had left. */
  markMissing(): OperatorError {
    return this.#hasLeft ? new OperatorError('this server has stopped') : this.end(changeMissing())
  }

  /** Ends all comparisons. Waits until the reason why this node has stopped is in the database. */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.#recording
    for (const close of this.#own) close()
    await this.#looking
  }
}

const UNKNOWN_PART = sql`CAST('-' AS TEXT)`

async function permittedIdentity(session: Reader): Promise<Sql> {
  const permitted: Sql[] = []
  for (const part of parts) permitted.push((await isPermitted(session, part)) ? part : UNKNOWN_PART)
  return permitted.reduce((all, part) => sql`${all} || ' ' || ${part}`)
}

/** Why the nodes do not agree on the copy that answers; null if they do. */
function breakIn({ lost, agreed, identity }: Row): HistoryLost | null {
  if (lost !== null) return new HistoryLost(lost)
  return isSameCopy(agreed, identity) ? null : otherCopy(agreed, identity)
}

async function isPermitted(session: Reader, part: Sql): Promise<boolean> {
  try {
    await session.get(sql`SELECT ${part} AS part`)
    return true
  } catch (error) {
    if (isLost(error)) throw error
    return false
  }
}

/** Returns the error for callers while the copy that answers must not be used. */
export function unreachable(cause: unknown): DatabaseUnavailable {
  if (cause instanceof OperatorError)
    return new DatabaseUnavailable('this server may no longer use the database', { cause })
  const fault = faultOf(cause)
  return fault instanceof DatabaseUnavailable
    ? fault
    : new DatabaseUnavailable('the database cannot be reached', { cause })
}

const otherCopy = (agreed: string, found: string) => new HistoryLost(`it was copy ${agreed}, and is ${found}`)

/** Returns why the node has to stop if the copy lacks something that the node knows of; null if it lacks nothing. */
function missing(
  { beats, at, marks = {} }: Pick<Found, 'beats' | 'at'> & Partial<Pick<Found, 'marks'>>,
  known: { beats: number; at: number },
  counts: readonly CommitCount[],
): OperatorError | null {
  // After this time, other nodes have deleted the rows that this node would compare.
  if (known.at > 0 && at - known.at > KEPT_MILLIS) return new HistoryContinued()
  if ((beats ?? 0) < known.beats) return new HistoryLost('heartbeats of a node are missing')
  return counts.some(({ writer, commits }) => (marks[writer] ?? 0) < commits) ? changeMissing() : null
}

const changeMissing = () => new HistoryLost('a change that was acknowledged is missing')
