/** SQL of the `agent_claim_page` table: what was shown to a person who entered a code, until the person decides. */
import { createHash } from 'node:crypto'
import { sql, type Reader, type Tx, type Writer } from '../../../platform/database/database.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'

/** The claim that was shown, and to which account. */
export interface ShownClaim {
  did: Did
  claimId: string
  scopes: readonly string[]
}

export async function insertShownClaim(
  tx: Tx,
  idHash: string,
  { did, claimId, scopes }: ShownClaim,
  expiresAt: Millis,
): Promise<void> {
  await tx.run(sql`
    INSERT INTO agent_claim_page (id_hash, did, claim_id, scopes, expires_at)
    VALUES (${idHash}, ${did}, ${claimId}, ${JSON.stringify(scopes)}, ${expiresAt})`)
}

/** Returns what was shown; null if there is none, or if it has expired. */
export async function findShownClaim(reader: Reader, idHash: string, now: Millis): Promise<ShownClaim | null> {
  const row = await reader.get<{ did: Did; claimId: string; scopes: string }>(sql`
    SELECT did, claim_id AS "claimId", scopes FROM agent_claim_page WHERE id_hash = ${idHash} AND expires_at > ${now}`)
  return row && { ...row, scopes: JSON.parse(row.scopes) as string[] }
}

/** Deletes what was shown: an id serves one decision. Returns 0 if there is none, or if it has expired. */
export const takeShownClaim = (tx: Tx, idHash: string, now: Millis): Promise<number> =>
  tx.run(sql`DELETE FROM agent_claim_page WHERE id_hash = ${idHash} AND expires_at > ${now}`)

/**
 * Key of what a wallet is shown, which has no id of its own. No form token has this hash, because form tokens are
 * longer.
 */
const previewHash = (did: Did, claimId: string): string =>
  createHash('sha256').update(`preview of ${claimId} for ${did}`).digest('hex')

/** Store what a wallet is shown, in place of what it was shown of the same claim before. */
export async function keepPreview(
  writer: Writer,
  { did, claimId, scopes }: ShownClaim,
  expiresAt: Millis,
): Promise<void> {
  const list = JSON.stringify(scopes)
  await writer.run(sql`
    INSERT INTO agent_claim_page (id_hash, did, claim_id, scopes, expires_at)
    VALUES (${previewHash(did, claimId)}, ${did}, ${claimId}, ${list}, ${expiresAt})
    ON CONFLICT (id_hash) DO UPDATE SET scopes = ${list}`)
}

/** Returns the scopes that a wallet of the account was last shown; null if it was shown none. */
export async function previewedScopes(reader: Reader, did: Did, claimId: string): Promise<readonly string[] | null> {
  const row = await reader.get<{ scopes: string }>(
    sql`SELECT scopes FROM agent_claim_page WHERE id_hash = ${previewHash(did, claimId)}`,
  )
  return row && (JSON.parse(row.scopes) as string[])
}

export const deleteShownClaimsBefore = (tx: Writer, before: Millis): Promise<number> =>
  tx.run(sql`DELETE FROM agent_claim_page WHERE expires_at <= ${before}`)

/** Forget the confirmation pages that are open for the account. */
export const deleteShownClaimsOf = (tx: Writer, did: Did): Promise<number> =>
  tx.run(sql`DELETE FROM agent_claim_page WHERE did = ${did}`)
