/** SQL of the `agent_claim_page` table: what a person who entered a code is shown, until the person decides. */
import { sql, type Tx, type Writer } from '../../platform/database/database.ts'
import type { Did, Millis } from '../../protocol/identifiers.ts'

/** What was shown to whom. */
export interface ShownClaim {
  did: Did
  claimId: string
  scopes: readonly string[]
}

export async function insertShownClaim(tx: Tx, idHash: string, { did, claimId, scopes }: ShownClaim, expiresAt: Millis): Promise<void> {
  await tx.run(sql`
    INSERT INTO agent_claim_page (id_hash, did, claim_id, scopes, expires_at)
    VALUES (${idHash}, ${did}, ${claimId}, ${JSON.stringify(scopes)}, ${expiresAt})`)
}

/** Returns what was shown, and deletes it: an id serves one decision. Null if there is none, or if it has expired. */
export async function takeShownClaim(tx: Tx, idHash: string, now: Millis): Promise<ShownClaim | null> {
  const row = await tx.get<{ did: Did; claimId: string; scopes: string }>(sql`
    SELECT did, claim_id AS "claimId", scopes FROM agent_claim_page WHERE id_hash = ${idHash} AND expires_at > ${now}`)
  if (row === null) return null
  await tx.run(sql`DELETE FROM agent_claim_page WHERE id_hash = ${idHash}`)
  return { ...row, scopes: JSON.parse(row.scopes) as string[] }
}

export const deleteShownClaimsBefore = (tx: Writer, before: Millis): Promise<number> =>
  tx.run(sql`DELETE FROM agent_claim_page WHERE expires_at <= ${before}`)

/** Forget what somebody who was signed in as the account is being shown. */
export const deleteShownClaimsOf = (tx: Writer, did: Did): Promise<number> => tx.run(sql`DELETE FROM agent_claim_page WHERE did = ${did}`)
