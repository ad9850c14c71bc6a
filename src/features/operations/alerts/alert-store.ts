/** SQL of the tables `alert` and `alert_message`. */
import { sql, type Reader, type Tx } from '../../../platform/database/database.ts'
import type { Millis } from '../../../protocol/identifiers.ts'
import type { AlertState } from './alert-state.ts'

export interface AlertRow extends AlertState {
  name: string
  /** Empty if there is only one of the name. */
  subject: string
}

/** All alerts that are known, in order of their beginning. */
export const listAlerts = (reader: Reader): Promise<AlertRow[]> =>
  reader.all<AlertRow>(sql`
    SELECT name, subject, text, since, clear_since AS "clearSince", told, told_at AS "toldAt" FROM alert
    ORDER BY since, name, subject`)

/** Returns how many alerts of each name are on. */
export async function countAlertsOn(reader: Reader): Promise<[name: string, count: number][]> {
  const rows = await reader.all<{ name: string; count: number }>(
    sql`SELECT name, count(*) AS count FROM alert WHERE told = 'begun' GROUP BY name ORDER BY name`,
  )
  return rows.map(({ name, count }) => [name, count])
}

export async function putAlert(tx: Tx, row: AlertRow): Promise<void> {
  const { name, subject, text, since, clearSince, told, toldAt } = row
  await tx.run(sql`
    INSERT INTO alert (name, subject, text, since, clear_since, told, told_at)
    VALUES (${name}, ${subject}, ${text}, ${since}, ${clearSince}, ${told}, ${toldAt})
    ON CONFLICT (name, subject) DO UPDATE SET text = excluded.text, since = excluded.since,
      clear_since = excluded.clear_since, told = excluded.told, told_at = excluded.told_at`)
}

export async function deleteAlert(tx: Tx, { name, subject }: Pick<AlertRow, 'name' | 'subject'>): Promise<void> {
  await tx.run(sql`DELETE FROM alert WHERE name = ${name} AND subject = ${subject}`)
}

/** Forget alerts that were over before an instant. */
export const deleteAlertsOverBefore = (tx: Tx, before: Millis): Promise<number> =>
  tx.run(sql`DELETE FROM alert WHERE told = 'over' AND told_at < ${before}`)

/** Returns how many accounts were made since then. */
export const countAccountsSince = async (reader: Reader, since: Millis): Promise<number> =>
  (await reader.get<{ count: number }>(sql`SELECT count(*) AS count FROM account WHERE created_at > ${since}`))!.count

/** Returns how many messages were ordered since then, and forgets those before. */
export async function countMessages(tx: Tx, { since, now }: { since: Millis; now: Millis }): Promise<number> {
  // A time in the future was noted while the clock was wrong.
  await tx.run(sql`DELETE FROM alert_message WHERE ordered_at < ${since} OR ordered_at > ${now}`)
  return (await tx.get<{ count: number }>(sql`SELECT count(*) AS count FROM alert_message`))!.count
}

export async function noteMessage(tx: Tx, { id, at }: { id: string; at: Millis }): Promise<void> {
  await tx.run(sql`INSERT INTO alert_message (id, ordered_at) VALUES (${id}, ${at})`)
}
