/** SQL of the `pending_sign_in` table: sign-ins on pages with the right password that wait for a second factor. */
import { sql, type Reader, type Tx, type Writer } from '../../../platform/database/database.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'

export interface PendingSignIn {
  did: Did
  /** Hash of a secret that only the browser has. */
  browserHash: string
}

export const insertPendingSignIn = (
  tx: Tx,
  tokenHash: string,
  { did, browserHash }: PendingSignIn,
  expiresAt: Millis,
): Promise<number> =>
  tx.run(sql`
    INSERT INTO pending_sign_in (token_hash, did, browser_hash, expires_at) VALUES (${tokenHash}, ${did}, ${browserHash}, ${expiresAt})`)

/** Returns null if it has expired, has ended, or belongs to another browser. */
export async function findPendingSignIn(
  reader: Reader,
  tokenHash: string,
  browserHash: string,
  now: Millis,
): Promise<Did | null> {
  const row = await reader.get<{ did: Did }>(sql`
    SELECT did FROM pending_sign_in
    WHERE token_hash = ${tokenHash} AND browser_hash = ${browserHash} AND expires_at > ${now}`)
  return row?.did ?? null
}

export const deletePendingSignIn = (writer: Writer, tokenHash: string): Promise<number> =>
  writer.run(sql`DELETE FROM pending_sign_in WHERE token_hash = ${tokenHash}`)

export const deletePendingSignInsOf = (tx: Tx, did: Did): Promise<number> =>
  tx.run(sql`DELETE FROM pending_sign_in WHERE did = ${did}`)

export const deletePendingSignInsBefore = (tx: Tx, now: Millis): Promise<number> =>
  tx.run(sql`DELETE FROM pending_sign_in WHERE expires_at <= ${now}`)
