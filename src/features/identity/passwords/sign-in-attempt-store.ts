/** SQL of the `sign_in_attempt` table, in which the nodes of a cluster count attempts together. */
import { MINUTE_MILLIS } from '../../../base/durations.ts'
import { sql, type Database, type Tx, type Writer } from '../../../platform/database/database.ts'
import type { Millis } from '../../../protocol/identifiers.ts'

/** How long an attempt counts: from its beginning while it is running, and from its end once it has failed. */
export const WINDOW_MILLIS = MINUTE_MILLIS

/** A time further ahead was written by a node whose clock is wrong. */
const counts = (now: Millis) => sql`until > ${now} AND until <= ${now + 2 * WINDOW_MILLIS}`

interface Attempt {
  id: string
  nameHash: string
  /** Network of the caller; empty if unknown. */
  network: string
}

interface Counts {
  running: number
  failed: number
  /** How many of the failed attempts came from the network of the caller. */
  failedHere: number
}

/** Counts the running and the failed attempts with a name. */
export async function countAttempts(
  tx: Tx,
  { nameHash, network }: Pick<Attempt, 'nameHash' | 'network'>,
  now: Millis,
): Promise<Counts> {
  const row = await tx.get<{ count: number; failed: number; failedHere: number }>(sql`
    SELECT count(*) AS count, CAST(coalesce(sum(has_failed), 0) AS INTEGER) AS failed,
      CAST(coalesce(sum(CASE WHEN network = ${network} THEN has_failed ELSE 0 END), 0) AS INTEGER) AS "failedHere"
    FROM sign_in_attempt WHERE name_hash = ${nameHash} AND ${counts(now)}`)
  const { count, failed, failedHere } = row!
  return { running: count - failed, failed, failedHere }
}

export const insertAttempt = (tx: Tx, { id, nameHash, network }: Attempt, now: Millis): Promise<number> =>
  tx.run(sql`
    INSERT INTO sign_in_attempt (id, name_hash, network, has_failed, until)
    VALUES (${id}, ${nameHash}, ${network}, 0, ${now + WINDOW_MILLIS})`)

export const markFailed = (writer: Writer, id: string, now: Millis): Promise<number> =>
  writer.run(sql`UPDATE sign_in_attempt SET has_failed = 1, until = ${now + WINDOW_MILLIS} WHERE id = ${id}`)

export const deleteAttempt = (writer: Writer, id: string): Promise<number> =>
  writer.run(sql`DELETE FROM sign_in_attempt WHERE id = ${id}`)

/** Delete an attempt that has succeeded, and the failures with the same name. */
export const clearFailures = (writer: Writer, { id, nameHash }: Pick<Attempt, 'id' | 'nameHash'>): Promise<number> =>
  writer.run(sql`DELETE FROM sign_in_attempt WHERE id = ${id} OR (name_hash = ${nameHash} AND has_failed = 1)`)

export async function deleteOldAttempts({ cluster }: Pick<Database, 'cluster'>, now: Millis): Promise<void> {
  await cluster?.autocommit(
    sql`DELETE FROM sign_in_attempt WHERE until <= ${now} OR until > ${now + 2 * WINDOW_MILLIS}`,
  )
}
