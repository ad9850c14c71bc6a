/**
 * SQL of the `agent_event` table, the record of what agents did and of how they began and ended. Sweeps delete old
 * events; otherwise, events are deleted only with their registration or account.
 */
import { randomUUID } from 'node:crypto'
import { sql, type Reader, type Tx, type Writer } from '../../../platform/database/database.ts'
import type { Act } from '../../../http/credential.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'

export type AgentEventType =
  'registered' | 'claim_initiated' | 'claim_confirmed' | 'claim_expired' | 'token_exchanged' | AgentUse | 'revoked'

export interface AgentEvent {
  seq: number
  id: string
  type: AgentEventType
  did: Did | null
  /** Never a body, a record key, a token, a code or an address. */
  detail: Record<string, unknown> | null
  createdAt: Millis
}

/** Add an event in the transaction of the change that it records. */
export async function insertAgentEvent(
  tx: Tx,
  {
    registrationId,
    type,
    did,
    detail = null,
    now,
  }: {
    registrationId: string
    type: AgentEventType
    did: Did | null
    detail?: Record<string, unknown> | null
    now: Millis
  },
): Promise<void> {
  await tx.run(sql`
    INSERT INTO agent_event (id, registration_id, type, did, detail, created_at)
    VALUES (${randomUUID()}, ${registrationId}, ${type}, ${did}, ${detail === null ? null : JSON.stringify(detail)}, ${now})`)
}

/** What agents do with their access. All other events say how an agent began or ended. */
export type AgentUse = Act['type']

/**
 * Record what an agent does in the transaction that does it, if the account still allows the agent. Returns 0 if it
 * does not.
 */
export const insertAgentUse = (
  tx: Tx,
  {
    registrationId,
    type,
    did,
    detail,
    now,
  }: { registrationId: string; type: AgentUse; did: Did; detail: Record<string, unknown>; now: Millis },
): Promise<number> =>
  tx.run(sql`
    INSERT INTO agent_event (id, registration_id, type, did, detail, created_at)
    SELECT ${randomUUID()}, id, ${type}, did, ${JSON.stringify(detail)}, ${now} FROM agent_registration
    WHERE id = ${registrationId} AND did = ${did} AND status = 'claimed'`)

/** Returns the events of a registration, newest first. If `beforeSeq` is null, starts at the newest. */
export async function listAgentEvents(
  reader: Reader,
  registrationId: string,
  { beforeSeq, limit }: { beforeSeq: number | null; limit: number },
): Promise<AgentEvent[]> {
  const rows = await reader.all<Omit<AgentEvent, 'detail'> & { detail: string | null }>(sql`
    SELECT seq, id, type, did, detail, created_at AS "createdAt" FROM agent_event
    WHERE registration_id = ${registrationId} ${beforeSeq === null ? sql`` : sql`AND seq < ${beforeSeq}`}
    ORDER BY seq DESC LIMIT ${limit}`)
  return rows.map((row) => ({
    ...row,
    detail: row.detail === null ? null : (JSON.parse(row.detail) as Record<string, unknown>),
  }))
}

/**
 * When the first event beyond the `keep` newest ones of unclaimed agents was added. Null if there are no more than
 * `keep`.
 */
export const unclaimedEventAt = async (reader: Reader, keep: number): Promise<Millis | null> =>
  (
    await reader.get<{ at: Millis }>(
      sql`SELECT created_at AS at FROM agent_event WHERE did IS NULL ORDER BY created_at DESC LIMIT 1 OFFSET ${keep}`,
    )
  )?.at ?? null

/** Delete old events of unconfirmed agents whose registrations are gone. */
export const deleteUnclaimedEvents = (tx: Tx, before: Millis, limit: number): Promise<number> =>
  tx.run(sql`
    DELETE FROM agent_event WHERE seq IN (
      SELECT seq FROM agent_event e WHERE did IS NULL AND created_at <= ${before}
        AND NOT EXISTS (SELECT 1 FROM agent_registration r WHERE r.id = e.registration_id)
      ORDER BY created_at LIMIT ${limit})`)

/** A page of registrations in order of their ids, each with its newest event beyond the `keep` newest ones, if any. */
export const newestSurplus = (
  reader: Reader,
  after: string,
  { keep, limit }: { keep: number; limit: number },
): Promise<{ id: string; surplus: number | null }[]> =>
  reader.all(sql`
    SELECT id, (
      SELECT e.seq FROM agent_event e WHERE e.registration_id = r.id ORDER BY e.seq DESC LIMIT 1 OFFSET ${keep}) AS surplus
    FROM agent_registration r WHERE id > ${after} ORDER BY id LIMIT ${limit}`)

/**
 * Delete the oldest records, up to an event, of what an agent did with its access. Records of how it began and ended
 * stay.
 */
export const deleteUsesUntil = (
  writer: Writer,
  registrationId: string,
  until: number,
  limit: number,
): Promise<number> =>
  writer.run(sql`
    DELETE FROM agent_event WHERE seq IN (
      SELECT seq FROM agent_event WHERE registration_id = ${registrationId} AND seq <= ${until}
        AND type IN ('token_exchanged', 'repo_write', 'blob_upload', 'preferences', 'service_call')
      ORDER BY seq LIMIT ${limit})`)
