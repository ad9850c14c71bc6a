/** SQL of the `session` table. */
import type { KnownOrigin } from '../../../http/origin.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'
import { sql, type Reader, type Sql, type Tx, type Writer } from '../../../platform/database/database.ts'

export interface Session {
  id: string
  did: Did
  appPassword: string | null
  currentToken: string
  previousToken: string | null
  rotatedAt: Millis | null
}

/** Most sessions of an account. The page of the account reads all of them. */
const MAX_PER_ACCOUNT = 5000
/**
 * Most sessions that one new session ends. An account that had many more before this limit existed loses the rest
 * later.
 */
const MAX_ENDED = 1000

/**
 * Make room for a session of an account. If there are too many, ends the sessions that were never refreshed, the oldest
 * first, because programs that sign in for each run leave such sessions behind; then those that were refreshed longest
 * ago.
 */
export const makeRoomForSession = (tx: Tx, did: Did): Promise<number> =>
  tx.run(sql`
    DELETE FROM session WHERE id IN (SELECT id FROM session WHERE did = ${did}
      ORDER BY COALESCE(rotated_at, 0) DESC, COALESCE(opened_at, 0) DESC, id LIMIT ${MAX_ENDED} OFFSET ${MAX_PER_ACCOUNT - 1})`)

export async function insertSession(
  tx: Tx,
  session: Omit<Session, 'previousToken' | 'rotatedAt'> & { byPassword: boolean; expiresAt: Millis },
  { openedAt, openedWith, openedFrom }: KnownOrigin,
): Promise<void> {
  const { id, did, appPassword, byPassword, currentToken, expiresAt } = session
  await tx.run(sql`
    INSERT INTO session (id, did, app_password, by_password, current_token, expires_at, opened_at, opened_with, opened_from)
    VALUES (${id}, ${did}, ${appPassword}, ${byPassword ? 1 : 0}, ${currentToken}, ${expiresAt}, ${openedAt}, ${openedWith}, ${openedFrom})`)
}

export const findSession = (reader: Reader, id: string, did: Did): Promise<Session | null> =>
  reader.get(sql`
    SELECT id, did, app_password AS "appPassword", current_token AS "currentToken", previous_token AS "previousToken", rotated_at AS "rotatedAt"
    FROM session WHERE id = ${id} AND did = ${did}`)

/** SQL: whether the session has not ended. Does not check expiry, because no access token outlives its session. */
export const sessionExists = (id: string, did: Did): Sql =>
  sql`EXISTS (SELECT 1 FROM session WHERE id = ${id} AND did = ${did})`

export interface ListedSession extends Pick<Session, 'id' | 'appPassword' | 'rotatedAt'>, KnownOrigin {
  byPassword: boolean
  expiresAt: Millis
}

/** Returns sessions that have not expired, most recently refreshed first. */
export async function listSessions(reader: Reader, did: Did, now: Millis): Promise<ListedSession[]> {
  const rows = await reader.all<Omit<ListedSession, 'byPassword'> & { byPassword: number }>(sql`
    SELECT id, app_password AS "appPassword", by_password AS "byPassword", rotated_at AS "rotatedAt", expires_at AS "expiresAt",
      opened_at AS "openedAt", opened_with AS "openedWith", opened_from AS "openedFrom"
    FROM session
    WHERE did = ${did} AND expires_at > ${now} ORDER BY expires_at DESC`)
  return rows.map((row) => ({ ...row, byPassword: row.byPassword === 1 }))
}

/** Make `token` the current token, and the current token the previous one. Returns the number of rows changed. */
export const rotateSession = (
  tx: Tx,
  id: string,
  { token, now, expiresAt }: { token: string; now: Millis; expiresAt: Millis },
): Promise<number> =>
  tx.run(sql`
    UPDATE session SET previous_token = current_token, current_token = ${token}, rotated_at = ${now}, expires_at = ${expiresAt} WHERE id = ${id}`)

export const deleteSession = (tx: Tx, id: string): Promise<number> => tx.run(sql`DELETE FROM session WHERE id = ${id}`)
export const deleteSessionsOf = (tx: Tx, did: Did): Promise<number> =>
  tx.run(sql`DELETE FROM session WHERE did = ${did}`)
export const deleteSessionsByPassword = (tx: Tx, did: Did): Promise<number> =>
  tx.run(sql`DELETE FROM session WHERE did = ${did} AND by_password = 1`)
export const deleteSessionsOfAppPassword = (tx: Tx, did: Did, name: string): Promise<number> =>
  tx.run(sql`DELETE FROM session WHERE did = ${did} AND app_password = ${name}`)
export const deleteExpiredSessions = (writer: Writer, now: Millis): Promise<number> =>
  writer.run(sql`DELETE FROM session WHERE expires_at <= ${now}`)
