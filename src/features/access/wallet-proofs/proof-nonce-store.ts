/** SQL of the `proof_nonce` table. */
import { sql, type Tx, type Writer } from '../../../platform/database/database.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'

/** Returns 0 if the account has used the nonce before. */
export const insertProofNonce = (tx: Tx, did: Did, nonce: string, usedAt: Millis): Promise<number> =>
  tx.run(
    sql`INSERT INTO proof_nonce (did, nonce, used_at) VALUES (${did}, ${nonce}, ${usedAt}) ON CONFLICT (did, nonce) DO NOTHING`,
  )

export const deleteNoncesBefore = (writer: Writer, instant: Millis): Promise<number> =>
  writer.run(sql`DELETE FROM proof_nonce WHERE used_at < ${instant}`)

export const deleteNoncesOf = (tx: Tx, did: Did): Promise<number> =>
  tx.run(sql`DELETE FROM proof_nonce WHERE did = ${did}`)
