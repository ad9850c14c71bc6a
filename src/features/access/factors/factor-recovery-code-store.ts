/** SQL of the `factor_recovery_code` table. */
import { sql, type Tx } from '../../../platform/database/database.ts'
import type { Did } from '../../../protocol/identifiers.ts'

export async function replaceFactorRecoveryCodes(tx: Tx, did: Did, hashes: readonly string[]): Promise<void> {
  await deleteFactorRecoveryCodes(tx, did)
  for (const hash of hashes)
    await tx.run(sql`INSERT INTO factor_recovery_code (did, code_hash) VALUES (${did}, ${hash})`)
}

/** Returns 0 if the account has no such code. */
export const takeFactorRecoveryCode = (tx: Tx, did: Did, hash: string): Promise<number> =>
  tx.run(sql`DELETE FROM factor_recovery_code WHERE did = ${did} AND code_hash = ${hash}`)

export const deleteFactorRecoveryCodes = (tx: Tx, did: Did): Promise<number> =>
  tx.run(sql`DELETE FROM factor_recovery_code WHERE did = ${did}`)
