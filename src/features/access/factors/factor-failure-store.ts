/** SQL of the `factor_failure` table: wrong codes of an account, which no change of address or session forgives. */
import { sql, type Reader, type Tx } from '../../../platform/database/database.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'

export async function failuresOf(reader: Reader, did: Did, now: Millis): Promise<number> {
  const row = await reader.get<{ failures: number }>(
    sql`SELECT failures FROM factor_failure WHERE did = ${did} AND until > ${now}`,
  )
  return row?.failures ?? 0
}

/** Count a failure. A window that is over begins again, and ends at `until`. */
export const countFactorFailure = (tx: Tx, did: Did, now: Millis, until: Millis): Promise<number> =>
  tx.run(sql`
    INSERT INTO factor_failure (did, failures, until) VALUES (${did}, 1, ${until})
    ON CONFLICT (did) DO UPDATE SET
      failures = CASE WHEN factor_failure.until > ${now} THEN factor_failure.failures + 1 ELSE 1 END,
      until = CASE WHEN factor_failure.until > ${now} THEN factor_failure.until ELSE excluded.until END`)

export const forgetFactorFailures = (tx: Tx, did: Did): Promise<number> =>
  tx.run(sql`DELETE FROM factor_failure WHERE did = ${did}`)
