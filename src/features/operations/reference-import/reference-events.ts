/** Reads the event log of a reference PDS. */
import { decode, type Data, type DataObject } from '../../../protocol/cbor.ts'
import { storedEventFrame, type EventType } from '../../../protocol/frames.ts'
import { isObject } from '../../../protocol/lexicons/schema.ts'
import { Malformed } from '../../../protocol/malformed.ts'
import { parseDid, type Millis } from '../../../protocol/identifiers.ts'
import type { EventRow } from '../../data/firehose/firehose.ts'
import type { ReferenceDatabase } from './reference-database.ts'

const PAGE = 200

/** Types of events in the old log, and what they are called when they are sent. */
const types: Readonly<Record<string, EventType>> = {
  append: 'commit',
  sync: 'sync',
  identity: 'identity',
  account: 'account',
}

/** Returns the newest number that the old server has assigned; 0 if it has assigned none. */
export function lastSeqOf(database: ReferenceDatabase): number {
  const given = database.get<{ seq: number }>("SELECT seq FROM sqlite_sequence WHERE name = 'repo_seq'")
  const newest = database.get<{ seq: number | null }>('SELECT max(seq) AS seq FROM repo_seq')
  return Math.max(given?.seq ?? 0, newest?.seq ?? 0)
}

/** Returns the number of the first event since an instant; null if there is none. */
export const firstSeqSinceOf = (database: ReferenceDatabase, at: Millis): number | null =>
  database.get<{ seq: number | null }>(
    'SELECT min(seq) AS seq FROM repo_seq WHERE sequencedAt >= ?',
    new Date(at).toISOString(),
  )!.seq

export const countEventsOf = (database: ReferenceDatabase, from: number): number =>
  database.get<{ count: number }>('SELECT count(*) AS count FROM repo_seq WHERE seq >= ? AND invalidated = 0', from)!
    .count

interface StoredEvent {
  seq: number
  did: string
  eventType: string
  event: unknown
  sequencedAt: string
}

/**
 * Yields the events from a number on, in pages, in the form in which subscribers receive them. Leaves out malformed
 * events, and reports them to `onFault`.
 */
export function* eventsFrom(
  database: ReferenceDatabase,
  from: number,
  onFault: (fault: string) => void,
): Generator<EventRow[]> {
  for (let next = from; ;) {
    const rows = database.all<StoredEvent>(
      `SELECT seq, did, eventType, event, sequencedAt FROM repo_seq WHERE seq >= ? AND invalidated = 0 ORDER BY seq LIMIT ${PAGE}`,
      next,
    )
    if (rows.length === 0) return
    next = rows.at(-1)!.seq + 1
    yield rows.flatMap((row) => {
      const type = types[row.eventType]
      if (type === undefined) return []
      const event = eventOf(type, row)
      if (event === null) onFault(`event ${row.seq} in ${database.path} is malformed: it is left out`)
      return event ?? []
    })
  }
}

function eventOf(type: EventType, { seq, did: text, event, sequencedAt: time }: StoredEvent): EventRow | null {
  const [did, sequencedAt] = [parseDid(text), Date.parse(time)]
  const body = event instanceof Uint8Array ? decodedOf(event) : null
  if (did === null || Number.isNaN(sequencedAt) || !isObject(body)) return null
  return { seq, did, type, sequencedAt, frame: storedEventFrame(type, body as DataObject, seq, sequencedAt) }
}

/** Returns null for malformed bytes. */
function decodedOf(bytes: Uint8Array): Data {
  try {
    return decode(bytes)
  } catch (error) {
    if (!(error instanceof Malformed)) throw error
    return null
  }
}
