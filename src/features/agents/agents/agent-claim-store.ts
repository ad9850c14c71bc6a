/** SQL of the `agent_claim` table, the codes with which people confirm registrations. */
import { sql, type Reader, type Tx } from '../../../platform/database/database.ts'
import type { Millis } from '../../../protocol/identifiers.ts'

export interface Claim {
  id: string
  registrationId: string
  userCode: string
  expiresAt: Millis
  /** A `pending` claim is valid only until `expiresAt`; the sweep marks it as expired later. */
  status: 'pending' | 'completed' | 'expired'
  email: string | null
  /** The program and the network that asked for the code; null if unknown. */
  openedWith: string | null
  openedFrom: string | null
  createdAt: Millis
}

const columns = sql`id, registration_id AS "registrationId", user_code AS "userCode", expires_at AS "expiresAt", status, email,
  opened_with AS "openedWith", opened_from AS "openedFrom", created_at AS "createdAt"`

export const findClaim = (reader: Reader, id: string): Promise<Claim | null> =>
  reader.get<Claim>(sql`SELECT ${columns} FROM agent_claim WHERE id = ${id}`)

/** Returns the pending claim with this code, else the newest finished one. */
export const findClaimByCode = (reader: Reader, userCode: string): Promise<Claim | null> =>
  reader.get<Claim>(sql`
    SELECT ${columns} FROM agent_claim WHERE user_code = ${userCode}
    ORDER BY CASE WHEN status = 'pending' THEN 0 ELSE 1 END, created_at DESC LIMIT 1`)

/** Returns the claim of a registration that may still be confirmed. There is at most one. */
export const findLiveClaim = (reader: Reader, registrationId: string, now: Millis): Promise<Claim | null> =>
  reader.get<Claim>(sql`
    SELECT ${columns} FROM agent_claim WHERE registration_id = ${registrationId} AND status = 'pending' AND expires_at > ${now}`)

export const hasClaims = async (reader: Reader, registrationId: string): Promise<boolean> =>
  (await reader.get(sql`SELECT 1 FROM agent_claim WHERE registration_id = ${registrationId} LIMIT 1`)) !== null

/** Whether a pending claim has this code, even one that has expired and that the sweep has not marked yet. */
export const isCodeTaken = async (reader: Reader, userCode: string): Promise<boolean> =>
  (await reader.get(sql`SELECT 1 FROM agent_claim WHERE user_code = ${userCode} AND status = 'pending'`)) !== null

/** Throws a unique violation if a pending claim has this code. */
export async function insertClaim(
  tx: Tx,
  { id, registrationId, userCode, expiresAt, status, email, openedWith, openedFrom, createdAt }: Claim,
): Promise<void> {
  await tx.run(sql`
    INSERT INTO agent_claim (id, registration_id, user_code, expires_at, status, email, opened_with, opened_from, created_at)
    VALUES (${id}, ${registrationId}, ${userCode}, ${expiresAt}, ${status}, ${email}, ${openedWith}, ${openedFrom}, ${createdAt})`)
}

/** Returns 0 if the claim is finished or has expired. */
export const completeClaim = (tx: Tx, id: string, now: Millis): Promise<number> =>
  tx.run(
    sql`UPDATE agent_claim SET status = 'completed' WHERE id = ${id} AND status = 'pending' AND expires_at > ${now}`,
  )

/** Returns 0 if the claim is finished. */
export const expireClaim = (tx: Tx, id: string): Promise<number> =>
  tx.run(sql`UPDATE agent_claim SET status = 'expired' WHERE id = ${id} AND status = 'pending'`)

export const pendingClaimsOf = (reader: Reader, registrationId: string): Promise<Claim[]> =>
  reader.all<Claim>(
    sql`SELECT ${columns} FROM agent_claim WHERE registration_id = ${registrationId} AND status = 'pending'`,
  )

/** Returns pending claims that have expired. */
export const lapsedClaims = (reader: Reader, now: Millis, limit: number): Promise<Claim[]> =>
  reader.all<Claim>(
    sql`SELECT ${columns} FROM agent_claim WHERE status = 'pending' AND expires_at <= ${now} ORDER BY expires_at LIMIT ${limit}`,
  )

export const deleteFinishedClaims = (tx: Tx, before: Millis, limit: number): Promise<number> =>
  tx.run(sql`
    DELETE FROM agent_claim WHERE id IN (
      SELECT id FROM agent_claim WHERE status <> 'pending' AND expires_at <= ${before} ORDER BY expires_at LIMIT ${limit})`)
