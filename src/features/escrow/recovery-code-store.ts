/** SQL of the `recovery_code` table. */
import { sql, type Tx } from '../../platform/database/database.ts'
import type { Did } from '../../protocol/identifiers.ts'

export const deleteRecoveryCodesOf = (tx: Tx, did: Did): Promise<number> => tx.run(sql`DELETE FROM recovery_code WHERE did = ${did}`)
