/** Claim codes: rows of `invite_code` that have an expiry time and admit one account. Other invites do not expire. */
import { sql, sqlRows, type Reader, type Tx } from '../../platform/database/database.ts'
import type { Millis } from '../../protocol/identifiers.ts'

export interface ClaimCode {
  code: string
  createdAt: Millis
  expiresAt: Millis
  redeemedAt: Millis | null
  revokedAt: Millis | null
}

const columns = sql`code, created_at AS "createdAt", expires_at AS "expiresAt", revoked_at AS "revokedAt",
  (SELECT min(used_at) FROM invite_use WHERE invite_use.code = invite_code.code) AS "redeemedAt"`

/** Returns null if no claim code has this text. */
export const findClaimCode = (reader: Reader, code: string) =>
  reader.get<ClaimCode>(sql`SELECT ${columns} FROM invite_code WHERE code = ${code} AND expires_at IS NOT NULL`)

/** Throws a unique violation if one of the codes already exists; then none is stored. */
export async function insertClaimCodes(
  tx: Tx,
  codes: readonly string[],
  { createdBy, now, expiresAt }: { createdBy: string; now: Millis; expiresAt: Millis },
): Promise<void> {
  await tx.run(sql`
    INSERT INTO invite_code (code, available_uses, for_account, created_by, created_at, expires_at)
    VALUES ${sqlRows(codes.map((code) => [code, 1, 'admin', createdBy, now, expiresAt]))}`)
}

/** Returns at most `limit` claim codes that follow `after`, newest first. Null starts at the newest. */
export const listClaimCodes = (reader: Reader, after: { createdAt: Millis; code: string } | null, limit: number) =>
  reader.all<ClaimCode>(sql`
    SELECT ${columns} FROM invite_code
    WHERE expires_at IS NOT NULL AND ${after === null ? sql`1 = 1` : sql`(created_at < ${after.createdAt} OR (created_at = ${after.createdAt} AND code > ${after.code}))`}
    ORDER BY created_at DESC, code LIMIT ${limit}`)

/** Returns false if the code was already revoked. */
export const revokeClaimCode = async (tx: Tx, code: string, now: Millis): Promise<boolean> =>
  (await tx.run(sql`UPDATE invite_code SET disabled = 1, revoked_at = ${now} WHERE code = ${code} AND revoked_at IS NULL`)) > 0
