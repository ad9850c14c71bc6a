/** The SQL of the table `archive_schedule`: which accounts get an archive regularly, and when the next is due. */
import { DAY_MILLIS } from '../../../base/durations.ts'
import { sql, type Reader, type Tx } from '../../../platform/database/database.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'

export type Frequency = 'weekly' | 'monthly'

export const periodMillis: Readonly<Record<Frequency, Millis>> = { weekly: 7 * DAY_MILLIS, monthly: 30 * DAY_MILLIS }

export interface ArchiveSchedule {
  did: Did
  every: Frequency
  dueAt: Millis
}

/** Returns null if the account gets no archives regularly. */
export const findSchedule = (reader: Reader, did: Did): Promise<ArchiveSchedule | null> =>
  reader.get(sql`SELECT did, every, due_at AS "dueAt" FROM archive_schedule WHERE did = ${did}`)

export const putSchedule = (tx: Tx, { did, every, dueAt }: ArchiveSchedule): Promise<number> =>
  tx.run(sql`
    INSERT INTO archive_schedule (did, every, due_at) VALUES (${did}, ${every}, ${dueAt})
    ON CONFLICT (did) DO UPDATE SET every = excluded.every, due_at = excluded.due_at`)

export const deleteSchedule = (tx: Tx, did: Did): Promise<number> =>
  tx.run(sql`DELETE FROM archive_schedule WHERE did = ${did}`)

/**
 * A page of the schedules that are due, the oldest first, after `after`. A schedule that is further ahead than its
 * period was written before the clock was set back, and is due, too.
 */
export const dueSchedules = (
  reader: Reader,
  now: Millis,
  after: Pick<ArchiveSchedule, 'did' | 'dueAt'> | null,
  limit: number,
): Promise<ArchiveSchedule[]> =>
  reader.all(sql`
    SELECT did, every, due_at AS "dueAt" FROM archive_schedule
    WHERE (due_at <= ${now} OR due_at > ${now + periodMillis.monthly} OR (every = 'weekly' AND due_at > ${now + periodMillis.weekly}))
      AND (due_at, did) > (${after?.dueAt ?? -1}, ${after?.did ?? ''})
    ORDER BY due_at, did LIMIT ${limit}`)

/** Replace the time of a schedule unless it was changed meanwhile. Returns 0 if it was. */
export const advanceSchedule = (tx: Tx, { did, every, dueAt }: ArchiveSchedule, next: Millis): Promise<number> =>
  tx.run(sql`
    UPDATE archive_schedule SET due_at = ${next} WHERE did = ${did} AND every = ${every} AND due_at = ${dueAt}`)
