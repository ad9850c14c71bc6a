/** SQL of the `known_wallet` table: the accounts for which a wallet is known to hold a key. */
import { sql, type Reader, type Tx } from '../../../platform/database/database.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'

export const insertKnownWallet = (tx: Tx, did: Did, now: Millis): Promise<number> =>
  tx.run(sql`INSERT INTO known_wallet (did, known_since) VALUES (${did}, ${now}) ON CONFLICT (did) DO NOTHING`)

export const hasKnownWallets = async (reader: Reader): Promise<boolean> =>
  (await reader.get<{ did: Did }>(sql`SELECT did FROM known_wallet LIMIT 1`)) !== null

export const deleteKnownWallet = (tx: Tx, did: Did): Promise<number> =>
  tx.run(sql`DELETE FROM known_wallet WHERE did = ${did}`)
