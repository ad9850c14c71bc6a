/** Authorization codes at rest. */
import { sql, type Tx } from '../../platform/database.ts'
import type { Did, Millis } from '../../protocol/identifiers.ts'

export function insertCode(tx: Tx, { codeHash, did, content, expiresAt }: { codeHash: string; did: Did; content: object; expiresAt: Millis }): Promise<number> {
  return tx.run(sql`INSERT INTO oauth_code (code_hash, did, content, expires_at) VALUES (${codeHash}, ${did}, ${JSON.stringify(content)}, ${expiresAt})`)
}

/** The code's row, which is gone from then on. */
export async function takeCode<Content>(tx: Tx, codeHash: string): Promise<{ did: Did; content: Content; expiresAt: Millis } | null> {
  const row = await tx.get<{ did: Did; content: string; expiresAt: Millis }>(sql`
    DELETE FROM oauth_code WHERE code_hash = ${codeHash}
    RETURNING did, content, expires_at AS "expiresAt"`)
  return row && { ...row, content: JSON.parse(row.content) as Content }
}

export const deleteCodesOf = (tx: Tx, did: Did): Promise<number> => tx.run(sql`DELETE FROM oauth_code WHERE did = ${did}`)
