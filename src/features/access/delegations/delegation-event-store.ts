/**
 * SQL of the `delegation_event` table, the append-only record of what delegates did, and of how delegations began and
 * ended.
 */
import { sql, sqlAnd, type Reader, type Tx } from '../../../platform/database/database.ts'
import type { Act } from '../../../http/credential.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'

/** Changes of a delegation, and acts of a delegate. */
export type DelegationEventType = 'invited' | 'accepted' | 'ended' | DelegateActType
export type DelegateActType = 'app_signed_in' | Act['type']

type Detail = Record<string, unknown> | null

export interface DelegationEvent {
  seq: number
  delegationId: string
  /** Null once the account of the delegate is deleted. */
  delegateDid: Did | null
  type: DelegationEventType
  /** Never a body, a record key, a token, a code or an address. */
  detail: Detail
  createdAt: Millis
}

const textOf = (detail: Detail): string | null => (detail === null ? null : JSON.stringify(detail))

/** Add an event in the transaction of the change that it records. */
export const insertDelegationEvent = (
  tx: Tx,
  { id, did }: { id: string; did: Did },
  { type, detail = null, now }: { type: DelegationEventType; detail?: Detail; now: Millis },
): Promise<number> =>
  tx.run(sql`
    INSERT INTO delegation_event (delegation_id, did, type, detail, created_at)
    VALUES (${id}, ${did}, ${type}, ${textOf(detail)}, ${now})`)

/** Record an act in the transaction that performs it. Returns 0 if the delegation has ended. */
export const insertDelegateAct = (
  tx: Tx,
  id: string,
  { type, detail, now }: { type: DelegateActType; detail: Detail; now: Millis },
): Promise<number> =>
  tx.run(sql`
    INSERT INTO delegation_event (delegation_id, did, type, detail, created_at)
    SELECT id, did, ${type}, ${textOf(detail)}, ${now} FROM delegation WHERE id = ${id} AND status = 'active'`)

/** A page of what delegates of an account did, newest first: of one delegation, or of all. */
export async function listDelegationEvents(
  reader: Reader,
  did: Did,
  delegationId: string | null,
  before: { seq: number } | null,
  limit: number,
): Promise<DelegationEvent[]> {
  const conditions = [
    sql`e.did = ${did}`,
    ...(delegationId === null ? [] : [sql`e.delegation_id = ${delegationId}`]),
    ...(before === null ? [] : [sql`e.seq < ${before.seq}`]),
  ]
  const rows = await reader.all<Omit<DelegationEvent, 'detail'> & { detail: string | null }>(sql`
    SELECT e.seq, e.delegation_id AS "delegationId", d.delegate_did AS "delegateDid", e.type, e.detail, e.created_at AS "createdAt"
    FROM delegation_event e JOIN delegation d ON d.id = e.delegation_id
    WHERE ${sqlAnd(conditions)} ORDER BY e.seq DESC LIMIT ${limit}`)
  return rows.map((row) => ({ ...row, detail: row.detail === null ? null : (JSON.parse(row.detail) as Detail) }))
}
