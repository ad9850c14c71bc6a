/** Claim codes: rows of `invite_code` that have an expiry time and admit one account. Other invites do not expire. */
import { sql, sqlRows, type Reader, type Tx } from '../../../platform/database/database.ts'
import type { Millis } from '../../../protocol/identifiers.ts'

export interface ClaimCode {
  code: string
  createdAt: Millis
  expiresAt: Millis
  /** Also true if the account of the code was deleted since; then `redeemedAt` is null. */
  isRedeemed: boolean
  redeemedAt: Millis | null
  /** Also true if the code was disabled like any other invite. */
  isRevoked: boolean
  revokedAt: Millis | null
  /** The domain under which the handle of the account must be; null for any. */
  domain: string | null
}

type Row = Omit<ClaimCode, 'isRedeemed' | 'isRevoked'> & { available: number; disabled: number }

const columns = sql`code, available_uses AS available, disabled, created_at AS "createdAt", expires_at AS "expiresAt", revoked_at AS "revokedAt", handle_domain AS domain,
  (SELECT min(used_at) FROM invite_use WHERE invite_use.code = invite_code.code) AS "redeemedAt"`

const fromRow = ({ available, disabled, ...row }: Row): ClaimCode => ({
  ...row,
  isRedeemed: row.redeemedAt !== null || available <= 0,
  isRevoked: row.revokedAt !== null || disabled === 1,
})

/** Returns null if no claim code has this text. */
export async function findClaimCode(reader: Reader, code: string): Promise<ClaimCode | null> {
  const row = await reader.get<Row>(
    sql`SELECT ${columns} FROM invite_code WHERE code = ${code} AND expires_at IS NOT NULL`,
  )
  return row && fromRow(row)
}

/**
 * `boundTo` is the pending account that the codes are for; null if they are not bound. Throws a unique violation if one
 * of the codes already exists; then no code is stored.
 */
export async function insertClaimCodes(
  tx: Tx,
  codes: readonly string[],
  {
    createdBy,
    boundTo = null,
    domain = null,
    now,
    expiresAt,
  }: { createdBy: string; boundTo?: string | null; domain?: string | null; now: Millis; expiresAt: Millis },
): Promise<void> {
  await tx.run(sql`
    INSERT INTO invite_code (code, available_uses, for_account, created_by, created_at, expires_at, bound_to, handle_domain)
    VALUES ${sqlRows(codes.map((code) => [code, 1, 'admin', createdBy, now, expiresAt, boundTo, domain]))}`)
}

/** Returns at most `limit` claim codes that follow `after`, newest first. Null starts at the newest. */
export const listClaimCodes = async (
  reader: Reader,
  after: { createdAt: Millis; code: string } | null,
  limit: number,
): Promise<ClaimCode[]> =>
  (
    await reader.all<Row>(sql`
    SELECT ${columns} FROM invite_code
    WHERE expires_at IS NOT NULL AND ${after === null ? sql`1 = 1` : sql`(created_at < ${after.createdAt} OR (created_at = ${after.createdAt} AND code > ${after.code}))`}
    ORDER BY created_at DESC, code LIMIT ${limit}`)
  ).map(fromRow)

/** Returns false if the code was already revoked. */
export const revokeClaimCode = async (tx: Tx, code: string, now: Millis): Promise<boolean> =>
  (await tx.run(
    sql`UPDATE invite_code SET disabled = 1, revoked_at = ${now} WHERE code = ${code} AND revoked_at IS NULL`,
  )) > 0
