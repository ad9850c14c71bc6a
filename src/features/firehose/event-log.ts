/** The SQL of the event log. */
import { sql, sqlRows, type Reader, type Tx } from '../../platform/database.ts'
import type { Did, Millis } from '../../protocol/identifiers.ts'
import type { EventType } from './events.ts'

export interface EventRow {
  seq: number
  type: EventType
  did: Did
  body: Uint8Array
  sequencedAt: Millis
}

export interface StoredEvent {
  seq: number
  type: EventType
  body: Uint8Array
}

/** The highest number ever given; 0 when none was. */
export async function headSeq(reader: Reader): Promise<number> {
  const row = await reader.get<{ newest: number | null; spent: number }>(sql`
    SELECT (SELECT max(seq) FROM repo_seq) AS newest, spent_through AS spent FROM repo_seq_past`)
  return Math.max(row!.newest ?? 0, row!.spent)
}

export async function insertEvents(tx: Tx, events: readonly EventRow[]): Promise<void> {
  const rows = events.map(({ seq, did, type, body, sequencedAt }) => [seq, did, type, body, sequencedAt])
  await tx.run(sql`INSERT INTO repo_seq (seq, did, event_type, event, sequenced_at) VALUES ${sqlRows(rows)}`)
}

/** The caller adds a newer row in the same transaction, so the head does not fall back. */
export function deleteEventsOf(tx: Tx, did: Did): Promise<number> {
  return tx.run(sql`DELETE FROM repo_seq WHERE did = ${did}`)
}
