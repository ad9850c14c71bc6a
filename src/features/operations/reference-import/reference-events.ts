/** Reads the event log of a reference PDS. */
import { decode, type DataObject } from '../../../protocol/cbor.ts'
import { storedEventFrame, type EventType } from '../../../protocol/frames.ts'
import { parseDid, type Millis } from '../../../protocol/identifiers.ts'
import type { EventRow } from '../../data/firehose/firehose.ts'
import type { ReferenceDatabase } from './reference-database.ts'

const PAGE = 200

/** Types of events that it sends, and what they are called when they are sent. */
const types: Readonly<Record<string, EventType>> = {
  append: 'commit',
  sync: 'sync',
  identity: 'identity',
  account: 'account',
}

/** The newest number that it has given; 0 if it has given none. */
export function lastSeqOf(database: ReferenceDatabase): number {
  const given = database.get<{ seq: number }>("SELECT seq FROM sqlite_sequence WHERE name = 'repo_seq'")
  const newest = database.get<{ seq: number | null }>('SELECT max(seq) AS seq FROM repo_seq')
  return Math.max(given?.seq ?? 0, newest?.seq ?? 0)
}

/** Number of the first event since an instant; null if there is none. */
export const firstSeqSinceOf = (database: ReferenceDatabase, at: Millis): number | null =>
  database.get<{ seq: number | null }>(
    'SELECT min(seq) AS seq FROM repo_seq WHERE sequencedAt >= ?',
    new Date(at).toISOString(),
  )!.seq

export const countEventsOf = (database: ReferenceDatabase, from: number): number =>
  database.get<{ count: number }>('SELECT count(*) AS count FROM repo_seq WHERE seq >= ? AND invalidated = 0', from)!
    .count

/** Yields the events from a number on, in pages, in the form in which subscribers receive them. */
export function* eventsFrom(database: ReferenceDatabase, from: number): Generator<EventRow[]> {
  for (let next = from; ;) {
    const rows = database.all<{ seq: number; did: string; eventType: string; event: Uint8Array; sequencedAt: string }>(
      `SELECT seq, did, eventType, event, sequencedAt FROM repo_seq WHERE seq >= ? AND invalidated = 0 ORDER BY seq LIMIT ${PAGE}`,
      next,
    )
    if (rows.length === 0) return
    next = rows.at(-1)!.seq + 1
    yield rows.flatMap(({ seq, did: text, eventType, event, sequencedAt: time }) => {
      const [type, did, sequencedAt] = [types[eventType], parseDid(text), Date.parse(time)]
      if (type === undefined || did === null) return []
      return [
        { seq, did, type, sequencedAt, frame: storedEventFrame(type, decode(event) as DataObject, seq, sequencedAt) },
      ]
    })
  }
}
