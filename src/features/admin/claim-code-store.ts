/** Rows of `invite_code` that let one account sign up and have an end; other invites have none. */
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

export const findClaimCode = (reader: Reader, code: string) =>
  reader.get<ClaimCode>(sql`SELECT ${columns} FROM invite_code WHERE code = ${code} AND expires_at IS NOT NULL`)

/** Throws on a code that exists. */
export async function insertClaimCodes(
  tx: Tx,
  codes: readonly string[],
  { createdBy, now, expiresAt }: { createdBy: string; now: Millis; expiresAt: Millis },
): Promise<void> {
  await tx.run(sql`
    INSERT INTO invite_code (code, available_uses, for_account, created_by, created_at, expires_at)
    VALUES ${sqlRows(codes.map((code) => [code, 1, 'admin', createdBy, now, expiresAt]))}`)
}

/** Newest first. */
export const listClaimCodes = (reader: Reader, after: { createdAt: Millis; code: string } | null, limit: number) =>
  reader.all<ClaimCode>(sql`
    SELECT ${columns} FROM invite_code
    WHERE expires_at IS NOT NULL AND ${after === null ? sql`1 = 1` : sql`(created_at < ${after.createdAt} OR (created_at = ${after.createdAt} AND code > ${after.code}))`}
    ORDER BY created_at DESC, code LIMIT ${limit}`)

/** Whether it was not revoked before. */
export const revokeClaimCode = async (tx: Tx, code: string, now: Millis): Promise<boolean> =>
  (await tx.run(sql`UPDATE invite_code SET disabled = 1, revoked_at = ${now} WHERE code = ${code} AND revoked_at IS NULL`)) > 0
