/** SQL of the `delegation` table: which account acts for which, within which scopes, and until when. */
import { sql, sqlAnd, type Reader, type Tx } from '../../../platform/database/database.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'

/** `time`: its end date has come. `deletion`: the account of the delegate was deleted. */
export type DelegationEnd = 'holder' | 'delegate' | 'operator' | 'password_reset' | 'time' | 'deletion'

export interface Delegation {
  id: string
  /** The shared account. */
  did: Did
  /** Null once the account of the delegate is deleted. */
  delegateDid: Did | null
  /** The scopes, separated by spaces. They never change. */
  scope: string
  status: 'invited' | 'active' | 'ended'
  invitedAt: Millis
  acceptedAt: Millis | null
  /** Null if the delegation has no end. */
  expiresAt: Millis | null
  endedAt: Millis | null
  endedBy: DelegationEnd | null
}

const columns = sql`id, did, delegate_did AS "delegateDid", scope, status, invited_at AS "invitedAt", accepted_at AS "acceptedAt",
  expires_at AS "expiresAt", ended_at AS "endedAt", ended_by AS "endedBy"`

/** Throws a unique violation if the two accounts have a delegation that has not ended. */
export const insertDelegation = (
  tx: Tx,
  { id, did, delegateDid, scope, invitedAt, expiresAt }: Delegation & { delegateDid: Did },
): Promise<number> =>
  tx.run(sql`
    INSERT INTO delegation (id, did, delegate_did, scope, status, invited_at, expires_at)
    VALUES (${id}, ${did}, ${delegateDid}, ${scope}, 'invited', ${invitedAt}, ${expiresAt})`)

export const findDelegation = (reader: Reader, id: string): Promise<Delegation | null> =>
  reader.get<Delegation>(sql`SELECT ${columns} FROM delegation WHERE id = ${id}`)

/**
 * Delegations of a shared account: those that have not ended first, so that no number of ended ones hides them; then
 * the newest first.
 */
export const delegationsOf = (reader: Reader, did: Did, limit: number): Promise<Delegation[]> =>
  reader.all<Delegation>(sql`
    SELECT ${columns} FROM delegation WHERE did = ${did}
    ORDER BY CASE WHEN status = 'ended' THEN 1 ELSE 0 END, invited_at DESC, id LIMIT ${limit}`)

/** Delegations of a shared account that have not ended. There are at most as many as an account may have. */
export const liveDelegationsOf = (reader: Reader, did: Did): Promise<Delegation[]> =>
  reader.all<Delegation>(sql`SELECT ${columns} FROM delegation WHERE did = ${did} AND status <> 'ended'`)

/**
 * Delegations by which an account acts for others, newest first, and then invitations to it. Strangers can send many
 * invitations, which must not hide an accepted delegation.
 */
export const delegationsTo = (reader: Reader, delegateDid: Did, limit: number): Promise<Delegation[]> =>
  reader.all<Delegation>(sql`
    SELECT ${columns} FROM delegation WHERE delegate_did = ${delegateDid} AND status <> 'ended'
    ORDER BY CASE WHEN status = 'active' THEN 0 ELSE 1 END, invited_at DESC, id LIMIT ${limit}`)

export interface DelegationPlace {
  invitedAt: Millis
  id: string
}

/** A page of the delegations that have not ended, oldest first: of one shared account, or of all. */
export function listLiveDelegations(
  reader: Reader,
  did: Did | null,
  after: DelegationPlace | null,
  limit: number,
): Promise<Delegation[]> {
  const conditions = [
    sql`status <> 'ended'`,
    ...(did === null ? [] : [sql`did = ${did}`]),
    ...(after === null ? [] : [sql`(invited_at, id) > (${after.invitedAt}, ${after.id})`]),
  ]
  return reader.all<Delegation>(
    sql`SELECT ${columns} FROM delegation WHERE ${sqlAnd(conditions)} ORDER BY invited_at, id LIMIT ${limit}`,
  )
}

/** Accept an invitation. Returns 0 unless it was open. */
export const updateAccepted = (tx: Tx, id: string, now: Millis): Promise<number> =>
  tx.run(sql`UPDATE delegation SET status = 'active', accepted_at = ${now} WHERE id = ${id} AND status = 'invited'`)

/** End a delegation. Returns 0 unless it was active. */
export const updateEnded = (tx: Tx, id: string, endedBy: DelegationEnd, now: Millis): Promise<number> =>
  tx.run(sql`
    UPDATE delegation SET status = 'ended', ended_at = ${now}, ended_by = ${endedBy} WHERE id = ${id} AND status = 'active'`)

/** Delete an invitation that was not accepted, with its record. */
export async function deleteInvitation(tx: Tx, id: string): Promise<void> {
  await tx.run(sql`DELETE FROM delegation_event WHERE delegation_id = ${id}`)
  await tx.run(sql`DELETE FROM delegation WHERE id = ${id} AND status = 'invited'`)
}

/** Forget who the delegate of ended delegations was. */
export const forgetDelegate = (tx: Tx, delegateDid: Did): Promise<number> =>
  tx.run(sql`UPDATE delegation SET delegate_did = NULL WHERE delegate_did = ${delegateDid} AND status = 'ended'`)

/** Delete a shared account's delegations and their record. */
export async function deleteDelegationsOf(tx: Tx, did: Did): Promise<void> {
  await tx.run(sql`DELETE FROM delegation_event WHERE did = ${did}`)
  await tx.run(sql`DELETE FROM delegation WHERE did = ${did}`)
}
