/**
 * The SQL of the list of events by account, which finds the events of an account without reading the log.
 *
 * Accounts write in any order, so with an index on accounts, each event would change a page of its own. On SQLite,
 * events are therefore added to a list some hundred at a time, in runs of sequence numbers. In each run, events are
 * sorted by account. A search takes one step for each run, and scans the few events that are not listed yet.
 * PostgreSQL, whose write-ahead log has rows instead of pages, has an index on accounts; its list is empty unless the
 * database came from SQLite.
 */
import { inPieces, sql, sqlList, type Reader, type Sql, type Tx } from '../../../platform/database/database.ts'
import type { Did } from '../../../protocol/identifiers.ts'

/** Sequence numbers in one run, as in migration 0260. */
const RUN_NUMBERS = 4096
/** Events that are listed at once, which takes a millisecond. */
export const LISTED_AT_ONCE = 512

const runOf = (seq: Sql): Sql => sql`${seq} / ${RUN_NUMBERS}`

/** All runs, the newest first. */
const runs = sql`
  WITH RECURSIVE step (run) AS (
    SELECT max(run) FROM repo_seq_run
    UNION ALL
    SELECT (SELECT max(earlier.run) FROM repo_seq_run earlier WHERE earlier.run < step.run) FROM step WHERE step.run IS NOT NULL
  ) SELECT run FROM step WHERE run IS NOT NULL`

const unlisted = sql`seq > (SELECT listed_through FROM repo_seq_past)`

/** SQL: the numbers of the events of an account. Some may not be in the log any more. */
export const eventNumbersOf = (did: Did): Sql => sql`
  SELECT listed.seq FROM (${runs}) AS found CROSS JOIN repo_seq_run AS listed WHERE listed.run = found.run AND listed.did = ${did}
  UNION ALL SELECT seq FROM repo_seq WHERE did = ${did} AND ${unlisted}`

/** Delete the events of an account from the log and from the list. Returns how many were in the log. */
export async function deleteEventsOf(tx: Tx, did: Did): Promise<number> {
  const deleted = await tx.run(sql`DELETE FROM repo_seq WHERE did = ${did} AND seq IN (${eventNumbersOf(did)})`)
  await tx.run(sql`DELETE FROM repo_seq_run WHERE did = ${did} AND run IN (${runs})`)
  return deleted
}

/** Returns the number of the newest `#commit` or `#sync` event of an account; null if there is none. */
export async function newestCommitSeq(reader: Reader, did: Did): Promise<number | null> {
  const tells = sql`event_type IN ('commit', 'sync')`
  const newest = await reader.get<{ seq: number | null; run: number | null }>(sql`
    SELECT (SELECT max(seq) FROM repo_seq WHERE did = ${did} AND ${tells} AND ${unlisted}) AS seq,
      (SELECT max(run) FROM repo_seq_run) AS run`)
  let { seq, run } = newest!
  while (seq === null && run !== null) {
    const step = await reader.get<{ seq: number | null; run: number | null }>(sql`
      SELECT (SELECT max(event.seq) FROM repo_seq_run listed JOIN repo_seq event ON event.seq = listed.seq
          WHERE listed.run = ${run} AND listed.did = ${did} AND ${tells}) AS seq,
        (SELECT max(run) FROM repo_seq_run WHERE run < ${run}) AS run`)
    ;({ seq, run } = step!)
  }
  return seq
}

/** List the oldest events after number `after`. Returns the number of the last one; null if there are none. */
export async function listSome(tx: Tx, after: number): Promise<number | null> {
  const page = await tx.get<{ last: number | null }>(sql`
    SELECT max(seq) AS last FROM (SELECT seq FROM repo_seq WHERE seq > ${after} ORDER BY seq LIMIT ${LISTED_AT_ONCE}) AS oldest`)
  const { last } = page!
  if (last === null) return null
  await tx.run(sql`
    INSERT INTO repo_seq_run (run, did, seq) SELECT ${runOf(sql`seq`)}, did, seq FROM repo_seq
    WHERE seq > ${after} AND seq <= ${last} ORDER BY seq / ${RUN_NUMBERS}, did, seq ON CONFLICT DO NOTHING`)
  await tx.run(sql`UPDATE repo_seq_past SET listed_through = ${last}`)
  return last
}

/** Add events to the list that were inserted in the range that it covers. */
export async function listAdded(tx: Tx, seqs: readonly number[]): Promise<void> {
  for (const piece of inPieces(seqs))
    await tx.run(sql`
      INSERT INTO repo_seq_run (run, did, seq) SELECT ${runOf(sql`seq`)}, did, seq FROM repo_seq
      WHERE seq IN ${sqlList(piece)} AND NOT ${unlisted} ON CONFLICT DO NOTHING`)
}

/**
 * Delete the entries of events up to number `through`, which the log no longer has. Deletes whole runs, so a part of
 * the last run may stay.
 */
export async function pruneList(tx: Tx, through: number): Promise<void> {
  await tx.run(sql`DELETE FROM repo_seq_run WHERE run < ${Math.floor((through + 1) / RUN_NUMBERS)}`)
}

/**
 * Returns the numbers of events after `after`, up to and including `through`, that the list covers but lacks. For
 * SQLite.
 */
export async function missingInList(reader: Reader, after: number, through: number): Promise<number[]> {
  const rows = await reader.all<{ seq: number }>(sql`
    SELECT seq FROM repo_seq event WHERE seq > ${after} AND seq <= ${through} AND NOT (${unlisted})
      AND NOT EXISTS (
        SELECT 1 FROM repo_seq_run listed
        WHERE listed.run = ${runOf(sql`event.seq`)} AND listed.did = event.did AND listed.seq = event.seq)
    ORDER BY seq`)
  return rows.map(({ seq }) => seq)
}

export async function listedThrough(reader: Reader): Promise<number> {
  const row = await reader.get<{ listed: number }>(sql`SELECT listed_through AS listed FROM repo_seq_past`)
  return row!.listed
}
