/** SQL of the `operator_role` table: which accounts operate the server. */
import { sql, type Reader, type Tx } from '../../../platform/database/database.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'
import type { Role } from './roles.ts'

/** For queries that join `account a`: whether it may operate the server, if it has a role. */
export const isActive = sql`a.takedown_ref IS NULL AND a.deactivated_at IS NULL`

/** Null if the account has no role. */
export const findRole = async (reader: Reader, did: Did): Promise<Role | null> =>
  (await reader.get<{ role: Role }>(sql`SELECT role FROM operator_role WHERE did = ${did}`))?.role ?? null

export interface RoleRow {
  did: Did
  handle: string | null
  role: Role
  givenBy: string
  givenAt: Millis
}

/** Returns at most `limit` accounts with a role, in the order of their DIDs, after `after`. */
export const listRoles = (reader: Reader, after: string, limit: number): Promise<RoleRow[]> =>
  reader.all<RoleRow>(sql`
    SELECT r.did, a.handle, r.role, r.given_by AS "givenBy", r.given_at AS "givenAt"
    FROM operator_role r LEFT JOIN account a ON a.did = r.did WHERE r.did > ${after} ORDER BY r.did LIMIT ${limit}`)

export async function setRole(tx: Tx, did: Did, role: Role, by: string, now: Millis): Promise<void> {
  await tx.run(sql`
    INSERT INTO operator_role (did, role, given_by, given_at) VALUES (${did}, ${role}, ${by}, ${now})
    ON CONFLICT (did) DO UPDATE SET role = excluded.role, given_by = excluded.given_by, given_at = excluded.given_at`)
}

export async function deleteRole(tx: Tx, did: Did): Promise<void> {
  await tx.run(sql`DELETE FROM operator_role WHERE did = ${did}`)
}

/** Whether there is another owner whose account is active, and who may thus sign in. */
export const hasOtherOwner = async (tx: Tx, did: Did): Promise<boolean> =>
  (await tx.get(sql`
    SELECT 1 FROM operator_role r JOIN account a ON a.did = r.did
    WHERE r.role = 'owner' AND r.did <> ${did} AND ${isActive} LIMIT 1`)) !== null
