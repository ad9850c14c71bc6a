/** The SQL of events that have no number yet. For PostgreSQL alone: see `sequencer.ts`. */
import {
  accountLock,
  sql,
  type Database,
  type Lease,
  type Reader,
  type Sql,
  type Tx,
} from '../../../platform/database/database.ts'
import { framePieces, frameTime, type RepoEvent } from '../../../protocol/frames.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'

/**
 * Store events that get their numbers once the transaction has committed. Events of one account get their ids in the
 * order of commits: the lock of the account, which most transactions with its events hold already, makes the second
 * transaction wait for the end of the first. The transaction gets its own id before its events get theirs, as `Floor`
 * requires.
 */
export async function insertUnnumbered(tx: Tx, events: readonly RepoEvent[], writtenAt: Millis): Promise<void> {
  const rows = events.map((event, place) => {
    const { head, middle, rest } = framePieces(event)
    const erases = erasesEarlier(event) ? 1 : 0
    return sql`(CAST(${place} AS INTEGER), CAST(${event.did} AS TEXT), CAST(${event.type} AS TEXT), CAST(${erases} AS BIGINT),
      CAST(${head} AS BYTEA), CAST(${middle} AS BYTEA), CAST(${rest} AS BYTEA))`
  })
  await tx.run(sql`
    WITH event (place, did, event_type, erases, head, middle, rest) AS (VALUES ${joined(rows)}),
      locked AS MATERIALIZED (
        SELECT count(pg_advisory_xact_lock(hashtextextended(${accountLock('')} || did, 0))), pg_current_xact_id()
        FROM (SELECT DISTINCT did FROM event ORDER BY did) AS account)
    INSERT INTO unnumbered_event (did, event_type, erases, written_at, head, middle, rest)
    SELECT did, event_type, erases, ${writtenAt}, head, middle, rest FROM locked, event ORDER BY place`)
}

/**
 * Delete the pending events of an account, and spend the numbers that they would have got: `writtenSeq` counts pending
 * events, and a reader that starts there must not miss the next ones. Locks the rows in the order of a batch. Events
 * that a batch has already taken are in the log afterwards.
 */
export async function deleteUnnumberedOf(tx: Tx, did: Did): Promise<void> {
  await tx.run(sql`
    WITH gone AS (
      DELETE FROM unnumbered_event WHERE id IN (SELECT id FROM unnumbered_event WHERE did = ${did} ORDER BY id FOR UPDATE) RETURNING id)
    UPDATE repo_seq_past SET spent_through = greatest(spent_through, (SELECT max(seq) FROM repo_seq)) + (SELECT count(*) FROM gone)`)
}

const joined = (rows: readonly Sql[]): Sql => rows.reduce((all, row) => sql`${all}, ${row}`)

/** Whether the event ends the account, whose earlier events are then deleted. */
export const erasesEarlier = (event: RepoEvent): boolean => event.type === 'account' && event.status === 'deleted'

/**
 * Most events in one batch, and most bytes before its last event. Subscribers wait for a batch, which is a transaction.
 */
export const BATCH_EVENTS = 1000
const BATCH_BYTES = 8 * 1024 * 1024

/** What a batch found and did. `lastId` is null if there was nothing to do. */
export interface Batch {
  /** Whether the lease was still held; otherwise nothing was done. */
  isHeld: boolean
  /**
   * Whether the database has all that it had acknowledged, as far as the sequencer knows; otherwise nothing was done.
   */
  isWhole: boolean
  /** The newest number. */
  head: number
  events: number
  lastId: number | null
  /** All transactions with lower ids have ended, as the batch sees it. */
  xmin: number
  /** Id of the batch's own transaction. */
  xid: number
}

/** A number as the CBOR of a frame: its head in the fewest bytes. */
const encodedSeq = sql`CASE
  WHEN seq < 24 THEN substring(int8send(seq) FROM 8)
  WHEN seq < 256 THEN CAST('\\x18' AS BYTEA) || substring(int8send(seq) FROM 8)
  WHEN seq < 65536 THEN CAST('\\x19' AS BYTEA) || substring(int8send(seq) FROM 7)
  WHEN seq < 4294967296 THEN CAST('\\x1a' AS BYTEA) || substring(int8send(seq) FROM 5)
  ELSE CAST('\\x1b' AS BYTEA) || int8send(seq) END`

const heldLease = ({ name, fence }: Pick<Lease, 'name' | 'fence'>) =>
  sql`SELECT 1 FROM lease WHERE name = ${name} AND fence = ${fence} FOR SHARE`

export interface BatchOptions {
  /** Null if no other process can number events. */
  lease: Pick<Lease, 'name' | 'fence'> | null
  /** SQL of `History.isWhole`. */
  whole?: Sql
  /** Numbers up to this one have been assigned. */
  knownHead?: number
  /** Events have ids above this one. */
  floor: number
  maxEvents: number
  sequencedAt: Millis
}

/**
 * Number the oldest events and move them into the log. Events before a deletion of their account are deleted instead,
 * in the log and in the batch. A single statement, and so a transaction of its own.
 *
 * It locks the row of the lease, so that no other node takes over before it has ended, and the row of `repo_seq_past`,
 * which orders it after every other change of the numbers.
 */
export const batchOf = ({
  lease,
  whole = sql`1 = 1`,
  knownHead = 0,
  floor,
  maxEvents,
  sequencedAt,
}: BatchOptions): Sql => sql`
    WITH held AS MATERIALIZED (${lease === null ? sql`SELECT 1` : heldLease(lease)}),
      head AS MATERIALIZED (SELECT greatest(spent_through, (SELECT max(seq) FROM repo_seq)) AS seq FROM repo_seq_past),
      whole AS MATERIALIZED (SELECT 1 FROM head WHERE seq >= ${knownHead} AND ${whole}),
      oldest AS (
        SELECT id, octet_length(rest) AS bytes FROM unnumbered_event
        WHERE id > ${floor} AND EXISTS (SELECT 1 FROM held) AND EXISTS (SELECT 1 FROM whole) ORDER BY id LIMIT ${maxEvents}),
      fitting AS (SELECT id FROM (SELECT id, sum(bytes) OVER (ORDER BY id) - bytes AS before FROM oldest) AS placed WHERE before < ${BATCH_BYTES}),
      taken AS (DELETE FROM unnumbered_event USING fitting WHERE unnumbered_event.id = fitting.id RETURNING unnumbered_event.*),
      past AS (
        UPDATE repo_seq_past SET spent_through = greatest(spent_through, (SELECT max(seq) FROM repo_seq)) + (SELECT count(*) FROM taken)
        WHERE EXISTS (SELECT 1 FROM taken) RETURNING spent_through),
      numbered AS (SELECT taken.*, spent_through - (SELECT count(*) FROM taken) + row_number() OVER (ORDER BY id) AS seq FROM taken, past),
      erasing AS (SELECT did, max(id) AS id FROM numbered WHERE erases = 1 GROUP BY did),
      erased AS (DELETE FROM repo_seq USING erasing WHERE repo_seq.did = erasing.did),
      stored AS (
        INSERT INTO repo_seq (seq, did, event_type, sequenced_at, frame)
        SELECT seq, did, event_type, ${sequencedAt}, head || ${encodedSeq} || middle || ${frameTime(sequencedAt)} || rest FROM numbered
        WHERE NOT EXISTS (SELECT 1 FROM erasing WHERE erasing.did = numbered.did AND erasing.id > numbered.id))
    SELECT EXISTS (SELECT 1 FROM held) AS "isHeld", EXISTS (SELECT 1 FROM whole) AS "isWhole",
      coalesce((SELECT spent_through FROM past), (SELECT seq FROM head)) AS head, (SELECT count(*) FROM taken) AS events, (SELECT max(id) FROM taken) AS "lastId",
      CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS TEXT) AS BIGINT) AS xmin, CAST(CAST(pg_current_xact_id() AS TEXT) AS BIGINT) AS xid`

/**
 * Number the events that a stopped cluster has left without a number, in a database that no server uses. Does nothing
 * on SQLite.
 */
export async function numberRest(db: Pick<Database, 'dialect' | 'transaction'>, sequencedAt: Millis): Promise<void> {
  if (db.dialect.name === 'sqlite') return
  const rest = batchOf({ lease: null, floor: 0, maxEvents: BATCH_EVENTS, sequencedAt })
  while ((await db.transaction((tx) => tx.get<Batch>(rest)))!.events > 0);
}

/** Returns a row if there are events above id `floor`. */
export const anyUnnumbered = (floor: number): Sql => sql`SELECT 1 FROM unnumbered_event WHERE id > ${floor} LIMIT 1`

/**
 * The number that the newest event has, or will have if it has none yet. An event that is committed a moment later may
 * get this number too, if its transaction was already running.
 */
export async function writtenSeq(reader: Reader): Promise<number> {
  const row = await reader.get<{ seq: number }>(sql`
    SELECT greatest(spent_through, (SELECT max(seq) FROM repo_seq)) + (SELECT count(*) FROM unnumbered_event) AS seq FROM repo_seq_past`)
  return row!.seq
}

/** How many events wait for their number, and since when the oldest of them does. */
export async function unnumberedEvents(reader: Reader): Promise<{ count: number; oldestAt: Millis | null }> {
  return (await reader.get(sql`SELECT count(*) AS count, min(written_at) AS "oldestAt" FROM unnumbered_event`))!
}
