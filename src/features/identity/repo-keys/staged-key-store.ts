/** SQL of the `staged_key` table. */
import { sql, type Reader, type Tx, type Writer } from '../../../platform/database/database.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'
import { parseOperation, type Operation } from '../../../protocol/plc.ts'
import type { WrappedKey } from '../../../platform/secrets/signing-keys.ts'

/** A key that is to replace the signing key of an account. */
export interface StagedKey extends WrappedKey {
  /**
   * The operation that was submitted to publish the key, until it is known whether it took effect; null if none was.
   */
  operation: Operation | null
  /**
   * When the operation was last sent without an answer, so that it may still arrive; null if every submission was
   * answered.
   */
  unansweredAt: Millis | null
}

export async function findStagedKey(reader: Reader, did: Did): Promise<StagedKey | null> {
  const row = await reader.get<Omit<StagedKey, 'operation'> & { operation: string | null }>(
    sql`SELECT signing_key AS "signingKey", wrapped, operation, unanswered_at AS "unansweredAt" FROM staged_key WHERE did = ${did}`,
  )
  return (
    row && {
      ...row,
      operation: row.operation === null ? null : (parseOperation(JSON.parse(row.operation)) as Operation),
    }
  )
}

/** Stage a key in place of an earlier one. Returns 0 if an operation that publishes the earlier one was submitted. */
export const putStagedKey = (tx: Tx, did: Did, { signingKey, wrapped }: WrappedKey, now: Millis): Promise<number> =>
  tx.run(sql`
    INSERT INTO staged_key (did, signing_key, wrapped, staged_at) VALUES (${did}, ${signingKey}, ${wrapped}, ${now})
    ON CONFLICT (did) DO UPDATE SET signing_key = excluded.signing_key, wrapped = excluded.wrapped, staged_at = excluded.staged_at
    WHERE staged_key.operation IS NULL`)

const isStaged = (did: Did, signingKey: string) => sql`did = ${did} AND signing_key = ${signingKey}`

/** Note that the operation of a staged key is being submitted; null: that it did not take effect. */
export const updateOperation = (tx: Tx, did: Did, signingKey: string, operation: Operation | null): Promise<number> =>
  tx.run(sql`
    UPDATE staged_key SET operation = ${operation && JSON.stringify(operation)}, unanswered_at = NULL WHERE ${isStaged(did, signingKey)}`)

export const updateUnanswered = (
  writer: Writer,
  did: Did,
  signingKey: string,
  unansweredAt: Millis | null,
): Promise<number> =>
  writer.run(sql`UPDATE staged_key SET unanswered_at = ${unansweredAt} WHERE ${isStaged(did, signingKey)}`)

/** Returns 0 if the key is no longer staged, or nothing was submitted to publish it. */
export const deleteSubmittedKey = (tx: Tx, did: Did, signingKey: string): Promise<number> =>
  tx.run(sql`DELETE FROM staged_key WHERE ${isStaged(did, signingKey)} AND operation IS NOT NULL`)

export const deleteStagedKey = (tx: Tx, did: Did): Promise<number> =>
  tx.run(sql`DELETE FROM staged_key WHERE did = ${did}`)
