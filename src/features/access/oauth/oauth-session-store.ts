/** Stores the sessions of apps, and the hashes of their refresh tokens. */
import { sql, type Reader, type Sql, type Tx } from '../../../platform/database/database.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'
import type { ClientKey } from './client-keys.ts'

export interface OAuthSession {
  id: string
  did: Did
  clientId: string
  clientName: string | null
  /** The granted scopes, separated by spaces. Permission sets are stored by name unless `scopeIsFixed`. */
  scope: string
  /** True if a wallet signed the scopes. Their permission sets are already expanded and stay so. */
  scopeIsFixed: boolean
  /** Thumbprint of the DPoP key that the session is bound to. */
  jkt: string
  /** The key that the client must authenticate with; null for a public client. */
  clientKey: ClientKey | null
  /** The program and the network from which the account holder authorized the app; null if unknown. */
  openedWith: string | null
  openedFrom: string | null
  createdAt: Millis
  refreshedAt: Millis
  /** When the session ends, even if it is refreshed. */
  expiresAt: Millis
  /** When the session ends unless it is refreshed before. */
  idleExpiresAt: Millis
  /** Null if the app does not get refresh tokens. */
  refresh: RefreshState | null
  /** Null if the account holder authorized the app. */
  delegation: SessionDelegation | null
}

/** The delegation of a session in which a delegate of the account authorized the app. */
export interface SessionDelegation {
  id: string
  delegateDid: Did
  /** What the delegate may do. */
  scope: string
}

/** The refresh tokens of a session, as hashes: the current one and the one before it. */
export interface RefreshState {
  tokenHash: string
  previousHash: string | null
  /** When the previous token was exchanged; null before the first exchange. */
  rotatedAt: Millis | null
}

interface DelegationColumns {
  delegationId: string | null
  delegateDid: Did | null
  delegationScope: string | null
}

interface SessionRow
  extends Omit<OAuthSession, 'scopeIsFixed' | 'clientKey' | 'refresh' | 'delegation'>, DelegationColumns {
  scopeIsFixed: number
  clientKey: string | null
  refreshHash: string | null
  previousHash: string | null
  rotatedAt: Millis | null
}

const delegationColumns = sql`delegation_id AS "delegationId", delegate_did AS "delegateDid", delegation_scope AS "delegationScope"`

const columns = sql`${delegationColumns}, id, did, client_id AS "clientId", client_name AS "clientName", scope, scope_is_fixed AS "scopeIsFixed", jkt,
  client_key AS "clientKey", opened_with AS "openedWith", opened_from AS "openedFrom",
  created_at AS "createdAt", refreshed_at AS "refreshedAt", expires_at AS "expiresAt", idle_expires_at AS "idleExpiresAt",
  refresh_hash AS "refreshHash", previous_refresh_hash AS "previousHash", rotated_at AS "rotatedAt"`

const delegationOf = ({ delegationId, delegateDid, delegationScope }: DelegationColumns): SessionDelegation | null =>
  delegationId === null ? null : { id: delegationId, delegateDid: delegateDid!, scope: delegationScope! }

function sessionOf({
  refreshHash,
  previousHash,
  rotatedAt,
  delegationId,
  delegateDid,
  delegationScope,
  ...row
}: SessionRow): OAuthSession {
  return {
    ...row,
    delegation: delegationOf({ delegationId, delegateDid, delegationScope }),
    scopeIsFixed: row.scopeIsFixed === 1,
    clientKey: row.clientKey === null ? null : (JSON.parse(row.clientKey) as ClientKey),
    refresh: refreshHash === null ? null : { tokenHash: refreshHash, previousHash, rotatedAt },
  }
}

/** Most sessions of an account, and of each of its delegations. The page of the account reads all of them. */
const MAX_PER_ACCOUNT = 5000
/**
 * Most sessions that one new session ends. An account that had many more before this limit existed loses the rest
 * later.
 */
const MAX_ENDED = 1000

/**
 * Make room for a session. If the account or the delegation has too many, ends the sessions that were never refreshed,
 * the oldest first, then those that were refreshed longest ago.
 */
export const makeRoomForOAuthSession = (tx: Tx, { did, delegation }: OAuthSession): Promise<number> =>
  tx.run(sql`
    DELETE FROM oauth_session WHERE id IN (SELECT id FROM oauth_session
      WHERE did = ${did} AND COALESCE(delegation_id, '') = ${delegation?.id ?? ''}
      ORDER BY COALESCE(rotated_at, 0) DESC, created_at DESC, id LIMIT ${MAX_ENDED} OFFSET ${MAX_PER_ACCOUNT - 1})`)

/** `codeHash` is the hash of the authorization code that the session was started with. */
export function insertOAuthSession(tx: Tx, session: OAuthSession, codeHash: string): Promise<number> {
  const {
    id,
    did,
    clientId,
    clientName,
    scope,
    scopeIsFixed,
    jkt,
    clientKey,
    openedWith,
    openedFrom,
    createdAt,
    refreshedAt,
    expiresAt,
    idleExpiresAt,
    refresh,
    delegation,
  } = session
  return tx.run(sql`
    INSERT INTO oauth_session (id, did, client_id, client_name, scope, scope_is_fixed, jkt, client_key, code_hash, refresh_hash,
      opened_with, opened_from, created_at, refreshed_at, expires_at, idle_expires_at, delegation_id, delegate_did, delegation_scope)
    VALUES (${id}, ${did}, ${clientId}, ${clientName}, ${scope}, ${scopeIsFixed ? 1 : 0}, ${jkt}, ${clientKey && JSON.stringify(clientKey)},
      ${codeHash}, ${refresh?.tokenHash ?? null}, ${openedWith}, ${openedFrom}, ${createdAt}, ${refreshedAt}, ${expiresAt}, ${idleExpiresAt},
      ${delegation?.id ?? null}, ${delegation?.delegateDid ?? null}, ${delegation?.scope ?? null})`)
}

/** Returns the session, even if it has expired; null if there is none. */
export async function findOAuthSession(reader: Reader, id: string): Promise<OAuthSession | null> {
  const row = await reader.get<SessionRow>(sql`SELECT ${columns} FROM oauth_session WHERE id = ${id}`)
  return row && sessionOf(row)
}

const isActive = (did: Sql): Sql =>
  sql`EXISTS (SELECT 1 FROM account one WHERE one.did = ${did} AND one.deactivated_at IS NULL AND one.takedown_ref IS NULL)`

/**
 * SQL: matches a session that is alive. A delegate's session is alive only while both accounts are active; its row is
 * gone once the delegation ends. Does not check expiry, because no access token outlives its session.
 */
const alive = (id: string, did: Did): Sql => sql`id = ${id} AND did = ${did}
  AND (delegation_id IS NULL OR (${isActive(sql`oauth_session.did`)} AND ${isActive(sql`delegate_did`)}))`

/**
 * Looks up a live session of the account, with its delegation if it has one. Returns null if the account has no such
 * session, or if it is not alive.
 */
export async function aliveOAuthSession(
  reader: Reader,
  id: string,
  did: Did,
): Promise<{ delegation: SessionDelegation | null } | null> {
  const row = await reader.get<DelegationColumns>(
    sql`SELECT ${delegationColumns} FROM oauth_session WHERE ${alive(id, did)}`,
  )
  return row && { delegation: delegationOf(row) }
}

/** SQL: whether the account has this session and it is alive. */
export const oauthSessionExists = (id: string, did: Did): Sql =>
  sql`EXISTS (SELECT 1 FROM oauth_session WHERE ${alive(id, did)})`

/** The account's sessions that have not expired, the most recently refreshed first. */
export async function oauthSessionsOf(reader: Reader, did: Did, now: Millis): Promise<OAuthSession[]> {
  const rows = await reader.all<SessionRow>(sql`
    SELECT ${columns} FROM oauth_session WHERE did = ${did} AND expires_at > ${now} AND idle_expires_at > ${now} ORDER BY refreshed_at DESC`)
  return rows.map(sessionOf)
}

/** Whether any account has a session of the client. */
export const hasSessionOfClient = async (reader: Reader, clientId: string): Promise<boolean> =>
  (await reader.get(sql`SELECT 1 FROM oauth_session WHERE client_id = ${clientId} LIMIT 1`)) !== null

/** Returns the session that was started with an authorization code; null if there is none. */
export const oauthSessionOfCode = (reader: Reader, codeHash: string): Promise<{ id: string } | null> =>
  reader.get(sql`SELECT id FROM oauth_session WHERE code_hash = ${codeHash}`)

/** Replace the exchanged refresh token with its successor. `tokenHash` is the successor's hash. */
export function rotateOAuthSession(
  tx: Tx,
  id: string,
  {
    tokenHash,
    previousHash,
    now,
    idleExpiresAt,
    clientKey,
  }: { tokenHash: string; previousHash: string; now: Millis; idleExpiresAt: Millis; clientKey: ClientKey | null },
): Promise<number> {
  return tx.run(sql`
    UPDATE oauth_session SET refresh_hash = ${tokenHash}, previous_refresh_hash = ${previousHash}, rotated_at = ${now},
      refreshed_at = ${now}, idle_expires_at = ${idleExpiresAt}, client_key = ${clientKey && JSON.stringify(clientKey)}
    WHERE id = ${id}`)
}

export const deleteOAuthSession = (tx: Tx, id: string): Promise<number> =>
  tx.run(sql`DELETE FROM oauth_session WHERE id = ${id}`)

/** Delete the account's sessions, and those by which it acts for others. Returns how many were the account's own. */
export async function deleteOAuthSessionsOf(tx: Tx, did: Did): Promise<number> {
  await tx.run(sql`DELETE FROM oauth_session WHERE delegate_did = ${did}`)
  return tx.run(sql`DELETE FROM oauth_session WHERE did = ${did}`)
}

/** Delete the sessions that a delegate opened for an account. */
export const deleteOAuthSessionsBy = (tx: Tx, { id, did }: { id: string; did: Did }): Promise<number> =>
  tx.run(sql`DELETE FROM oauth_session WHERE did = ${did} AND delegation_id = ${id}`)

/**
 * Delete the sessions that have expired at `now`. No session may be idle for longer than it lasts, so the index on idle
 * times finds all of them. Returns how many.
 */
export const deleteEndedOAuthSessions = (tx: Tx, now: Millis): Promise<number> =>
  tx.run(sql`DELETE FROM oauth_session WHERE idle_expires_at <= ${now}`)
