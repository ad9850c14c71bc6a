/** SQL of the `operator_key` table. */
import { sql, type Reader, type Tx } from '../../../platform/database/database.ts'
import type { Millis } from '../../../protocol/identifiers.ts'
import type { WrappedKey } from '../../../platform/secrets/signing-keys.ts'

export const insertOperatorKey = (tx: Tx, { signingKey, wrapped }: WrappedKey, createdAt: Millis): Promise<number> =>
  tx.run(
    sql`INSERT INTO operator_key (signing_key, wrapped, created_at) VALUES (${signingKey}, ${wrapped}, ${createdAt})`,
  )

/** Returns the newest key as a did:key; null if there is none. */
export const newestOperatorKey = async (reader: Reader): Promise<string | null> =>
  (
    await reader.get<{ signingKey: string }>(
      sql`SELECT signing_key AS "signingKey" FROM operator_key ORDER BY seq DESC LIMIT 1`,
    )
  )?.signingKey ?? null
