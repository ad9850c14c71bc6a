/**
 * Stores what happened to requests that wait for wallets. Events name their request by the hash of the pushed request,
 * and contain no code, token or signature.
 */
import { sql, sqlAnd, sqlList, type Reader, type Tx, type Writer } from '../../../platform/database/database.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'

export type ConsentAction = 'request_created' | 'push_dispatched' | 'approved' | 'denied' | 'completed'

export interface ConsentEvent {
  seq: number
  id: string
  /** Names the request; the same for all of its events. */
  requestHash: string
  action: ConsentAction
  /** Null until a decision. */
  accountDid: Did | null
  clientId: string
  detail: Record<string, unknown>
  createdAt: Millis
}

export type NewConsentEvent = Omit<ConsentEvent, 'seq' | 'id'>

export const insertConsentEvent = (
  tx: Tx,
  { requestHash, action, accountDid, clientId, detail, createdAt }: NewConsentEvent,
): Promise<number> =>
  tx.run(sql`
    INSERT INTO wallet_consent_event (id, request_hash, action, account_did, client_id, detail, created_at)
    VALUES (${crypto.randomUUID()}, ${requestHash}, ${action}, ${accountDid}, ${clientId}, ${JSON.stringify(detail)}, ${createdAt})`)

/** `accountDid`: of this account only; null for all. `beforeSeq`: only events older than this one; null for all. */
export interface ConsentEventFilter {
  accountDid: string | null
  beforeSeq: number | null
}

/** Returns matching events, the newest first. */
export async function listConsentEvents(
  reader: Reader,
  { accountDid, beforeSeq }: ConsentEventFilter,
  limit: number,
): Promise<ConsentEvent[]> {
  const conditions = [
    ...(accountDid === null ? [] : [sql`account_did = ${accountDid}`]),
    ...(beforeSeq === null ? [] : [sql`seq < ${beforeSeq}`]),
  ]
  const rows = await reader.all<Omit<ConsentEvent, 'detail'> & { detail: string }>(sql`
    SELECT seq, id, request_hash AS "requestHash", action, account_did AS "accountDid", client_id AS "clientId", detail,
      created_at AS "createdAt"
    FROM wallet_consent_event WHERE ${sqlAnd(conditions)} ORDER BY seq DESC LIMIT ${limit}`)
  return rows.map((row) => ({ ...row, detail: JSON.parse(row.detail) as Record<string, unknown> }))
}

export const deleteConsentEventsOf = (tx: Tx, requestHashes: readonly string[]): Promise<number> =>
  tx.run(sql`DELETE FROM wallet_consent_event WHERE request_hash IN ${sqlList(requestHashes)}`)

export const deleteConsentEventsBefore = (writer: Writer, instant: Millis): Promise<number> =>
  writer.run(sql`DELETE FROM wallet_consent_event WHERE created_at < ${instant}`)

/** Delete the events of requests that the account has decided, and of stored consents that name one of `hints`. */
export const deleteConsentEventsAbout = (tx: Tx, did: Did, hints: readonly string[]): Promise<number> =>
  tx.run(sql`
    DELETE FROM wallet_consent_event WHERE request_hash IN (
      SELECT request_hash FROM wallet_consent_event WHERE account_did = ${did}
      UNION SELECT request_hash FROM wallet_consent WHERE login_hint IN ${sqlList(hints)})`)
