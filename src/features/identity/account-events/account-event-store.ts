/** SQL of the `account_event` table: the activity that account holders see. */
import { DAY_MILLIS } from '../../../base/durations.ts'
import { sql, sqlList, type Reader, type Tx, type Writer } from '../../../platform/database/database.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'

/** Retention of events. */
export const EVENT_KEPT_DAYS = 90

export interface StoredEvent {
  id: string
  at: Millis
  event: string
  /** The means of a sign-in; null for other events. */
  means: string | null
  program: string | null
  network: string | null
  /** 1 or 0. */
  byOperator: number
  /** A handle, the name of an app password or of a program, or the client ID of an app; null if there is none. */
  subject: string | null
  /** How many events the row stands for: similar sign-ins on one day share a row, which shows the last of them. */
  times: number
}

interface NewEvent extends Omit<StoredEvent, 'times'> {
  /** The other account of this server that `subject` names; null if it names none. */
  subjectDid: Did | null
}

export interface EventPlace {
  at: Millis
  id: string
}

/** Insert an event. If the account has an event with this id, increment its count and replace its instant and place. */
export const putEvent = (
  writer: Writer,
  did: Did,
  { id, at, event, means, program, network, byOperator, subject, subjectDid }: NewEvent,
): Promise<number> =>
  writer.run(sql`
    INSERT INTO account_event (did, id, at, event, means, program, network, by_operator, subject, subject_did, times)
    VALUES (${did}, ${id}, ${at}, ${event}, ${means}, ${program}, ${network}, ${byOperator}, ${subject}, ${subjectDid}, 1)
    ON CONFLICT (did, id) DO UPDATE SET
      at = excluded.at, program = excluded.program, network = excluded.network, times = account_event.times + 1`)

/** Returns a page of an account's events, newest first. */
export const listEvents = (
  reader: Reader,
  did: Did,
  { after, since, limit }: { after: EventPlace | null; since: Millis; limit: number },
): Promise<StoredEvent[]> =>
  reader.all(sql`
    SELECT id, at, event, means, program, network, by_operator AS "byOperator", subject, times FROM account_event
    WHERE did = ${did} AND at > ${since} ${after === null ? sql`` : sql`AND (at, id) < (${after.at}, ${after.id})`}
    ORDER BY at DESC, id DESC LIMIT ${limit}`)

/** Returns how many events with one of these names an account has. */
export async function countEventsNamed(reader: Reader, did: Did, names: readonly string[]): Promise<number> {
  const row = await reader.get<{ count: number }>(
    sql`SELECT count(*) AS count FROM account_event WHERE did = ${did} AND event IN ${sqlList(names)}`,
  )
  return row?.count ?? 0
}

export const deleteEventsOf = (tx: Tx, did: Did): Promise<number> =>
  tx.run(sql`DELETE FROM account_event WHERE did = ${did}`)

/** Delete the name of an account from the events of other accounts. */
export const forgetSubject = (tx: Tx, did: Did): Promise<number> =>
  tx.run(sql`UPDATE account_event SET subject = NULL, subject_did = NULL WHERE subject_did = ${did}`)

export const deleteEventsUntil = (writer: Writer, until: Millis, limit: number): Promise<number> =>
  writer.run(sql`
    DELETE FROM account_event WHERE (did, id) IN
      (SELECT did, id FROM account_event WHERE at <= ${until} ORDER BY at LIMIT ${limit})`)

/** A page of the accounts that have events, after `after`, each with how many it has. */
export const countEvents = (reader: Reader, after: string, limit: number): Promise<{ did: Did; count: number }[]> =>
  reader.all(sql`
    SELECT did, count(*) AS count FROM account_event WHERE did > ${after} GROUP BY did ORDER BY did LIMIT ${limit}`)

/** Returns the events of which an account has more than `max`, each with the instant of the newest event in excess. */
export async function crowdedEvents(
  reader: Reader,
  did: Did,
  max: number,
): Promise<{ event: string; until: Millis }[]> {
  const crowded = await reader.all<{ event: string }>(sql`
    SELECT event FROM account_event WHERE did = ${did} GROUP BY event HAVING count(*) > ${max}`)
  const found: { event: string; until: Millis }[] = []
  for (const { event } of crowded) {
    const last = await reader.get<{ at: Millis }>(sql`
      SELECT at FROM account_event WHERE did = ${did} AND event = ${event} ORDER BY at DESC LIMIT 1 OFFSET ${max}`)
    if (last !== null) found.push({ event, until: last.at })
  }
  return found
}

export const deleteEventsOfKind = (
  writer: Writer,
  did: Did,
  { event, until, limit }: { event: string; until: Millis; limit: number },
): Promise<number> =>
  writer.run(sql`
    DELETE FROM account_event WHERE did = ${did} AND id IN
      (SELECT id FROM account_event WHERE did = ${did} AND event = ${event} AND at <= ${until} ORDER BY at LIMIT ${limit})`)

export const oldestKept = (now: Millis): Millis => now - EVENT_KEPT_DAYS * DAY_MILLIS
