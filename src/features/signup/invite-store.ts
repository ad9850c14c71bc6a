/** Rows of `invite_code` and `invite_use`. */
import { sql, type Reader, type Tx } from '../../platform/database.ts'
import type { Did, Millis } from '../../protocol/identifiers.ts'

/**
 * Whether one more may use the code: it exists, is neither disabled nor past its end, its owner is not taken down, and
 * fewer have used it, or are about to, than it is for.
 */
export async function isUsable(reader: Reader, code: string, now: Millis): Promise<boolean> {
  const row = await reader.get(sql`
    SELECT 1 FROM invite_code c
    WHERE code = ${code} AND disabled = 0 AND (expires_at IS NULL OR expires_at > ${now})
      AND NOT EXISTS (SELECT 1 FROM account a WHERE a.did = c.for_account AND a.takedown_ref IS NOT NULL)
      AND (SELECT COUNT(*) FROM invite_use u WHERE u.code = c.code) + (SELECT COUNT(*) FROM signup s WHERE s.invite_code = c.code) < available_uses`)
  return row !== null
}

export async function insertUse(tx: Tx, code: string, usedBy: Did, usedAt: Millis): Promise<void> {
  await tx.run(sql`INSERT INTO invite_use (code, used_by, used_at) VALUES (${code}, ${usedBy}, ${usedAt})`)
}
