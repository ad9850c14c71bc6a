/** Sessions of apps and their refresh tokens at rest. */
import { sql, type Reader, type Tx } from '../../platform/database.ts'
import type { Did, Millis } from '../../protocol/identifiers.ts'
import type { ClientKey } from './client-authentication.ts'

export interface OAuthSession {
  id: string
  did: Did
  clientId: string
  clientName: string | null
  /** As granted, separated by spaces; permission sets by name, unless `scopeIsFixed`. */
  scope: string
  /** The expansion of permission sets was signed by a wallet and stays as it was. */
  scopeIsFixed: boolean
  jkt: string
  clientKey: ClientKey | null
  createdAt: Millis
  refreshedAt: Millis
  /** Whatever happens, it ends then. */
  expiresAt: Millis
  /** It ends then unless it is refreshed. */
  idleExpiresAt: Millis
}

type SessionRow = Omit<OAuthSession, 'scopeIsFixed' | 'clientKey'> & { scopeIsFixed: number; clientKey: string | null }

const columns = sql`id, did, client_id AS "clientId", client_name AS "clientName", scope, scope_is_fixed AS "scopeIsFixed", jkt,
  client_key AS "clientKey", created_at AS "createdAt", refreshed_at AS "refreshedAt", expires_at AS "expiresAt", idle_expires_at AS "idleExpiresAt"`

const sessionOf = (row: SessionRow): OAuthSession => ({
  ...row,
  scopeIsFixed: row.scopeIsFixed === 1,
  clientKey: row.clientKey === null ? null : (JSON.parse(row.clientKey) as ClientKey),
})

export function insertSession(tx: Tx, session: OAuthSession, codeHash: string): Promise<number> {
  return tx.run(sql`
    INSERT INTO oauth_session (id, did, client_id, client_name, scope, scope_is_fixed, jkt, client_key, code_hash, created_at, refreshed_at, expires_at, idle_expires_at)
    VALUES (${session.id}, ${session.did}, ${session.clientId}, ${session.clientName}, ${session.scope}, ${session.scopeIsFixed ? 1 : 0}, ${session.jkt},
      ${session.clientKey && JSON.stringify(session.clientKey)}, ${codeHash}, ${session.createdAt}, ${session.refreshedAt}, ${session.expiresAt}, ${session.idleExpiresAt})`)
}

export async function findSession(reader: Reader, id: string): Promise<OAuthSession | null> {
  const row = await reader.get<SessionRow>(sql`SELECT ${columns} FROM oauth_session WHERE id = ${id}`)
  return row && sessionOf(row)
}

export async function isSessionAlive(reader: Reader, id: string, did: Did): Promise<boolean> {
  return (await reader.get(sql`SELECT 1 FROM oauth_session WHERE id = ${id} AND did = ${did}`)) !== null
}

export async function sessionsOf(reader: Reader, did: Did, now: Millis): Promise<OAuthSession[]> {
  const rows = await reader.all<SessionRow>(sql`
    SELECT ${columns} FROM oauth_session WHERE did = ${did} AND expires_at > ${now} AND idle_expires_at > ${now} ORDER BY refreshed_at DESC`)
  return rows.map(sessionOf)
}

export async function sessionOfCode(reader: Reader, codeHash: string): Promise<{ id: string } | null> {
  return reader.get<{ id: string }>(sql`SELECT id FROM oauth_session WHERE code_hash = ${codeHash}`)
}

export function touchSession(tx: Tx, id: string, { refreshedAt, idleExpiresAt, clientKey }: Pick<OAuthSession, 'refreshedAt' | 'idleExpiresAt' | 'clientKey'>): Promise<number> {
  return tx.run(sql`
    UPDATE oauth_session SET refreshed_at = ${refreshedAt}, idle_expires_at = ${idleExpiresAt}, client_key = ${clientKey && JSON.stringify(clientKey)}
    WHERE id = ${id}`)
}

export async function deleteSession(tx: Tx, id: string): Promise<number> {
  await tx.run(sql`DELETE FROM oauth_refresh_token WHERE session_id = ${id}`)
  return tx.run(sql`DELETE FROM oauth_session WHERE id = ${id}`)
}

export async function deleteSessionsOf(tx: Tx, did: Did): Promise<number> {
  await tx.run(sql`DELETE FROM oauth_refresh_token WHERE session_id IN (SELECT id FROM oauth_session WHERE did = ${did})`)
  return tx.run(sql`DELETE FROM oauth_session WHERE did = ${did}`)
}

export async function deleteEndedSessions(tx: Tx, now: Millis): Promise<number> {
  await tx.run(sql`DELETE FROM oauth_refresh_token WHERE session_id IN (
    SELECT id FROM oauth_session WHERE expires_at <= ${now} OR idle_expires_at <= ${now})`)
  return tx.run(sql`DELETE FROM oauth_session WHERE expires_at <= ${now} OR idle_expires_at <= ${now}`)
}

// Refresh tokens

export interface RefreshToken {
  sessionId: string
  supersededAt: Millis | null
  retriedAt: Millis | null
}

export function insertRefreshToken(tx: Tx, { tokenHash, sessionId, now }: { tokenHash: string; sessionId: string; now: Millis }): Promise<number> {
  return tx.run(sql`INSERT INTO oauth_refresh_token (token_hash, session_id, created_at) VALUES (${tokenHash}, ${sessionId}, ${now})`)
}

export function findRefreshToken(reader: Reader, tokenHash: string): Promise<RefreshToken | null> {
  return reader.get<RefreshToken>(sql`
    SELECT session_id AS "sessionId", superseded_at AS "supersededAt", retried_at AS "retriedAt" FROM oauth_refresh_token WHERE token_hash = ${tokenHash}`)
}

export const supersedeRefreshToken = (tx: Tx, tokenHash: string, now: Millis): Promise<number> =>
  tx.run(sql`UPDATE oauth_refresh_token SET superseded_at = ${now} WHERE token_hash = ${tokenHash}`)

export const retryRefreshToken = (tx: Tx, tokenHash: string, now: Millis): Promise<number> =>
  tx.run(sql`UPDATE oauth_refresh_token SET retried_at = ${now} WHERE token_hash = ${tokenHash}`)
