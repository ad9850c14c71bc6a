/** SQL of the `operator_session` table: where accounts are signed in as operators. */
import { sql, sqlAnd, type Reader, type Sql, type Tx } from '../../../platform/database/database.ts'
import type { Origin } from '../../../http/origin.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'
import { isActive } from './role-store.ts'
import type { Role } from './roles.ts'

export interface OperatorSession extends Origin {
  id: string
  did: Did
  /** SHA-256 of the browser's `User-Agent`; null if a program opened the session. */
  browserHash: string | null
  usedAt: Millis
  /** When the password was last entered. */
  provedAt: Millis
}

/** A session is alive if it was neither opened nor last used before these times. */
export interface Alive {
  openedAfter: Millis
  usedAfter: Millis
}

const columns = sql`s.id, s.did, s.browser_hash AS "browserHash", s.opened_at AS "openedAt", s.used_at AS "usedAt",
  s.proved_at AS "provedAt", s.opened_with AS "openedWith", s.opened_from AS "openedFrom"`
const alive = ({ openedAfter, usedAfter }: Alive): Sql => sql`s.opened_at > ${openedAfter} AND s.used_at > ${usedAfter}`

const operating = sql`operator_session s JOIN operator_role r ON r.did = s.did JOIN account a ON a.did = s.did AND ${isActive}`

/** The session with this token, if it is alive, and its account is active and still has a role. */
export const findOperatorSession = (reader: Reader, tokenHash: string, bounds: Alive) =>
  reader.get<OperatorSession & { role: Role }>(sql`
    SELECT ${columns}, r.role FROM ${operating} WHERE s.token_hash = ${tokenHash} AND ${alive(bounds)}`)

/** Returns the role of the session's account, unless the session has ended. Its token may be another one by now. */
export async function roleOfSession(reader: Reader, { id, did }: Pick<OperatorSession, 'id' | 'did'>) {
  const found = await reader.get<{ role: Role }>(
    sql`SELECT r.role FROM ${operating} WHERE s.id = ${id} AND s.did = ${did}`,
  )
  return found?.role ?? null
}

/** Returns sessions that are alive, of one account or (null) of all accounts, the latest first. */
export function listOperatorSessions(
  reader: Reader,
  { did, before }: { did: Did | null; before: { openedAt: Millis; id: string } | null },
  bounds: Alive,
  limit: number,
): Promise<(OperatorSession & { handle: string | null })[]> {
  const conditions = [alive(bounds)]
  if (did !== null) conditions.push(sql`s.did = ${did}`)
  if (before !== null)
    conditions.push(
      sql`(s.opened_at < ${before.openedAt} OR (s.opened_at = ${before.openedAt} AND s.id > ${before.id}))`,
    )
  return reader.all(sql`
    SELECT ${columns}, a.handle FROM operator_session s LEFT JOIN account a ON a.did = s.did
    WHERE ${sqlAnd(conditions)} ORDER BY s.opened_at DESC, s.id LIMIT ${limit}`)
}

export async function insertOperatorSession(tx: Tx, tokenHash: string, session: OperatorSession): Promise<void> {
  const { id, did, browserHash, openedAt, usedAt, provedAt, openedWith, openedFrom } = session
  await tx.run(sql`
    INSERT INTO operator_session
      (token_hash, id, did, browser_hash, opened_at, used_at, proved_at, opened_with, opened_from)
    VALUES (${tokenHash}, ${id}, ${did}, ${browserHash}, ${openedAt}, ${usedAt}, ${provedAt}, ${openedWith}, ${openedFrom})`)
}

export async function touchOperatorSession(tx: Tx, tokenHash: string, now: Millis): Promise<void> {
  await tx.run(sql`UPDATE operator_session SET used_at = ${now} WHERE token_hash = ${tokenHash}`)
}

/** Replace the token of a session, after the password was entered again. Returns 0 if the session has ended. */
export const renewOperatorSession = (tx: Tx, before: string, after: string, now: Millis): Promise<number> =>
  tx.run(sql`
    UPDATE operator_session SET token_hash = ${after}, proved_at = ${now}, used_at = ${now}
    WHERE token_hash = ${before}`)

/** End one session; `did` limits it to those of an account. Returns 0 if there is no such session. */
export const deleteOperatorSession = (tx: Tx, id: string, did: Did | null): Promise<number> =>
  tx.run(sql`DELETE FROM operator_session WHERE id = ${id} AND ${did === null ? sql`1 = 1` : sql`did = ${did}`}`)

/** End all sessions of an account. Returns how many. */
export const deleteOperatorSessionsOf = (tx: Tx, did: Did): Promise<number> =>
  tx.run(sql`DELETE FROM operator_session WHERE did = ${did}`)

/** Delete at most `limit` sessions that are no longer alive. Returns how many. */
export const deleteOldOperatorSessions = (tx: Tx, { openedAfter, usedAfter }: Alive, limit: number): Promise<number> =>
  tx.run(sql`
    DELETE FROM operator_session WHERE token_hash IN
      (SELECT token_hash FROM operator_session WHERE opened_at <= ${openedAfter} OR used_at <= ${usedAfter} LIMIT ${limit})`)
