/** The SQL of the event log. */
import { lockOn, sql, sqlRows, type Database, type Reader, type Tx } from '../../../platform/database/database.ts'
import { decode, decodeFirst } from '../../../protocol/cbor.ts'
import type { Cid } from '../../../protocol/cid.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'
import type { EventType } from '../../../protocol/frames.ts'
import { LISTED_AT_ONCE, listAdded, listSome, newestCommitSeq, pruneList } from './event-list.ts'

/** An event in the form that subscribers receive. */
export interface StoredEvent {
  seq: number
  did: Did
  type: EventType
  frame: Uint8Array
}

export interface EventRow extends StoredEvent {
  sequencedAt: Millis
}

/** The lock on the beginning of the log, where retention deletes. */
export const logLock = lockOn('event log', '')

/** The highest number ever assigned, and the highest that is listed by account. */
interface Ends {
  head: number
  listed: number
}

async function endsOf(reader: Reader): Promise<Ends> {
  const row = await reader.get<{ newest: number | null; spent: number; listed: number }>(sql`
    SELECT (SELECT max(seq) FROM repo_seq) AS newest, spent_through AS spent, listed_through AS listed FROM repo_seq_past`)
  return { head: Math.max(row!.newest ?? 0, row!.spent), listed: row!.listed }
}

/** The highest sequence number ever assigned; 0 if none was. */
export const headSeq = async (reader: Reader): Promise<number> => (await endsOf(reader)).head

/** Keys of the two ends in what the transactions of a group know. */
const HEAD = 'head of the event log'
const LISTED = 'end of the list of events'

/**
 * Like `headSeq`, for a transaction that numbers events itself. Only the first transaction of each group reads the log.
 */
export async function headToFollow(tx: Tx): Promise<number> {
  const known = tx.known.get(HEAD)
  if (known !== undefined) return known
  const { head, listed } = await endsOf(tx)
  tx.known.set(LISTED, listed)
  return head
}

/** Never assign a sequence number up to this one again. */
export async function raiseSeq(tx: Tx, spentThrough: number): Promise<void> {
  tx.known.delete(HEAD)
  await tx.run(sql`UPDATE repo_seq_past SET spent_through = ${spentThrough} WHERE spent_through < ${spentThrough}`)
}

/** Append events, in the order of their numbers. Call `headToFollow` first. */
export async function insertEvents(tx: Tx, events: readonly EventRow[]): Promise<void> {
  const rows = events.map(({ seq, did, type, sequencedAt, frame }) => [seq, did, type, sequencedAt, frame])
  await tx.run(sql`INSERT INTO repo_seq (seq, did, event_type, sequenced_at, frame) VALUES ${sqlRows(rows)}`)
  const newest = events.at(-1)!.seq
  tx.known.set(HEAD, newest)
  const listed = tx.known.get(LISTED)
  if (listed !== undefined && newest - listed >= LISTED_AT_ONCE)
    tx.known.set(LISTED, (await listSome(tx, listed)) ?? listed)
}

/** Insert events of another server under the numbers that they had there. Events that are already here stay. */
export async function keepEvents(tx: Tx, events: readonly EventRow[]): Promise<void> {
  if (events.length === 0) return
  tx.known.delete(HEAD)
  const rows = events.map(({ seq, did, type, sequencedAt, frame }) => [seq, did, type, sequencedAt, frame])
  await tx.run(sql`
    INSERT INTO repo_seq (seq, did, event_type, sequenced_at, frame) VALUES ${sqlRows(rows)} ON CONFLICT (seq) DO NOTHING`)
  await listAdded(
    tx,
    events.map(({ seq }) => seq),
  )
}

/** Note that events up to this number are no longer in the log. */
export async function raisePruned(tx: Tx, prunedThrough: number): Promise<void> {
  await tx.run(sql`UPDATE repo_seq_past SET pruned_through = ${prunedThrough} WHERE pruned_through < ${prunedThrough}`)
}

/** Most events in one page. */
export const PAGE_EVENTS = 128
/** A larger frame may only be the first of a page, which bounds the bytes of a page. */
const MAX_INNER_BYTES = 32 * 1024

/** The next page of events after `cursor`; empty at the end of the log. */
export async function eventsAfter(reader: Reader, cursor: number, maxEvents = PAGE_EVENTS): Promise<StoredEvent[]> {
  // The database knows the length of a frame without reading it.
  const rows = await reader.all<StoredEvent | { frame: null }>(sql`
    SELECT seq, did, event_type AS type,
      CASE WHEN length(frame) <= ${MAX_INNER_BYTES} OR seq = (SELECT min(seq) FROM repo_seq WHERE seq > ${cursor}) THEN frame END AS frame
    FROM repo_seq WHERE seq > ${cursor} ORDER BY seq LIMIT ${maxEvents}`)
  const left = rows.findIndex(({ frame }) => frame === null)
  return (left < 0 ? rows : rows.slice(0, left)) as StoredEvent[]
}

/** The next page of events after `cursor` with their times: `maxBytes` of frames, which the last frame may exceed. */
export async function wholeEventsAfter(
  reader: Reader,
  cursor: number,
  { maxEvents, maxBytes }: { maxEvents: number; maxBytes: number },
): Promise<EventRow[]> {
  const sizes = await reader.all<{ seq: number; bytes: number }>(
    sql`SELECT seq, length(frame) AS bytes FROM repo_seq WHERE seq > ${cursor} ORDER BY seq LIMIT ${maxEvents}`,
  )
  let bytes = 0
  const last = sizes.find((event) => (bytes += event.bytes) >= maxBytes) ?? sizes.at(-1)
  if (last === undefined) return []
  return reader.all(sql`
    SELECT seq, did, event_type AS type, sequenced_at AS "sequencedAt", frame FROM repo_seq
    WHERE seq > ${cursor} AND seq <= ${last.seq} ORDER BY seq`)
}

/** Returns when the oldest event of the log was logged; null if there is none. */
export async function loggedSince(reader: Reader): Promise<Millis | null> {
  const row = await reader.get<{ at: Millis }>(sql`SELECT sequenced_at AS at FROM repo_seq ORDER BY seq LIMIT 1`)
  return row?.at ?? null
}

/** Returns the newest `#commit` or `#sync` event of this repository in the log; null if there is none. */
export async function newestCommitEvent(
  reader: Reader,
  did: Did,
): Promise<{ rev: string; commit: string | null } | null> {
  const seq = await newestCommitSeq(reader, did)
  const row = await reader.get<{ frame: Uint8Array }>(sql`SELECT frame FROM repo_seq WHERE seq = ${seq}`)
  if (row === null) return null
  const { rev, commit } = decode(decodeFirst(row.frame).rest) as unknown as { rev: string; commit?: Cid }
  return { rev, commit: commit?.toString() ?? null }
}

/**
 * Returns the accounts of the events after `seq`, each once, the account that wrote last first; and the number of the
 * newest event. If there are more than `maxEvents`, the older ones are left out.
 */
export async function writtenSince(
  reader: Reader,
  seq: number,
  maxEvents: number,
): Promise<{ dids: Did[]; seq: number }> {
  const rows = await reader.all<{ seq: number; did: Did }>(
    sql`SELECT seq, did FROM repo_seq WHERE seq > ${seq} ORDER BY seq DESC LIMIT ${maxEvents}`,
  )
  return { dids: [...new Set(rows.map(({ did }) => did))], seq: rows[0]?.seq ?? seq }
}

/** The number up to which retention has deleted events; 0 if it has deleted none. */
export async function prunedThrough(reader: Reader): Promise<number> {
  const row = await reader.get<{ pruned: number }>(sql`SELECT pruned_through AS pruned FROM repo_seq_past`)
  return row!.pruned
}

/**
 * Number of the last event before the instant `at`: an older event that precedes all events from then until `now`; 0 if
 * there is none. An event from the future was logged while the clock was ahead, and is older than those that follow it.
 */
export async function lastSeqBefore(reader: Reader, at: Millis, now: Millis): Promise<number> {
  const row = await reader.get<{ seq: number }>(sql`
    SELECT seq FROM repo_seq WHERE sequenced_at < ${at} AND seq < coalesce(
      (SELECT seq FROM repo_seq WHERE sequenced_at >= ${at} AND sequenced_at <= ${now} ORDER BY seq LIMIT 1),
      (SELECT max(seq) + 1 FROM repo_seq))
    ORDER BY seq DESC LIMIT 1`)
  return row?.seq ?? 0
}

/**
 * Delete the oldest `maxRows` events up to number `through`, which the caller keeps below the head. Returns how many
 * were deleted.
 */
export async function pruneEvents(tx: Tx, through: number, maxRows: number): Promise<number> {
  const page = await tx.get<{ last: number | null }>(sql`
    SELECT max(seq) AS last FROM (SELECT seq FROM repo_seq WHERE seq <= ${through} ORDER BY seq LIMIT ${maxRows}) AS oldest`)
  if (page!.last === null) return 0
  await raiseSeq(tx, await headSeq(tx))
  await pruneList(tx, page!.last)
  const deleted = await tx.run(sql`DELETE FROM repo_seq WHERE seq <= ${page!.last}`)
  // Comes last: on PostgreSQL, no event gets a number from this statement to the end of the transaction.
  await tx.run(sql`UPDATE repo_seq_past SET pruned_through = ${page!.last}`)
  return deleted
}

/**
 * How many events the log has. To count them, SQLite would read the whole log. There, the list by account is counted
 * instead, which has a thirtieth of the bytes, and then the events that are not listed yet.
 */
export async function countEvents(db: Pick<Database, 'get' | 'cluster'>): Promise<number> {
  const row = await db.get<{ count: number }>(
    db.cluster === null
      ? sql`
        SELECT (SELECT count(*) FROM repo_seq_run WHERE seq > (SELECT pruned_through FROM repo_seq_past))
          + (SELECT count(*) FROM repo_seq WHERE seq > (SELECT listed_through FROM repo_seq_past)) AS count`
      : sql`SELECT count(*) AS count FROM repo_seq`,
  )
  return row!.count
}

/** When an event was logged; null if it is not in the log, or no longer. */
export async function sequencedAt(reader: Reader, seq: number): Promise<Millis | null> {
  const row = await reader.get<{ at: number }>(sql`SELECT sequenced_at AS at FROM repo_seq WHERE seq = ${seq}`)
  return row?.at ?? null
}

/** Returns when the oldest event after number `seq` was logged; null if there is none. */
export async function waitingSince(reader: Reader, seq: number): Promise<Millis | null> {
  const row = await reader.get<{ at: number }>(
    sql`SELECT sequenced_at AS at FROM repo_seq WHERE seq > ${seq} ORDER BY seq LIMIT 1`,
  )
  return row?.at ?? null
}
