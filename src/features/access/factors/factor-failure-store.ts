/**
 * SQL of the `factor_failure` table: wrong codes of an account. They count whatever address or session they come from.
 */
import { sql, type Reader, type Tx } from '../../../platform/database/database.ts'
import { MAX_SKEW_MILLIS } from '../../../platform/running/clock.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'

/**
 * A window of failures that begins now. A stored window that ends much later began while the clock was wrong, and
 * counts as over.
 */
export interface FailureWindow {
  now: Millis
  until: Millis
}

export async function failuresOf(reader: Reader, did: Did, { now, until }: FailureWindow): Promise<number> {
  const row = await reader.get<{ failures: number }>(
    sql`SELECT failures FROM factor_failure WHERE did = ${did} AND until > ${now} AND until <= ${until + MAX_SKEW_MILLIS}`,
  )
  return row?.failures ?? 0
}

/** Count a failure. A window that is over begins again. */
export const countFactorFailure = (tx: Tx, did: Did, { now, until }: FailureWindow): Promise<number> =>
  tx.run(sql`
    INSERT INTO factor_failure (did, failures, until) VALUES (${did}, 1, ${until})
    ON CONFLICT (did) DO UPDATE SET
      failures = CASE WHEN ${isOpen(now)} THEN factor_failure.failures + 1 ELSE 1 END,
      until = CASE WHEN ${isOpen(now)} THEN factor_failure.until ELSE excluded.until END`)

const isOpen = (now: Millis) =>
  sql`factor_failure.until > ${now} AND factor_failure.until <= excluded.until + ${MAX_SKEW_MILLIS}`

export const forgetFactorFailures = (tx: Tx, did: Did): Promise<number> =>
  tx.run(sql`DELETE FROM factor_failure WHERE did = ${did}`)
