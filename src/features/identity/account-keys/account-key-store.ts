/** SQL of the signing key in the row of an account, which a commit reads together with the status. */
import { validColumn, type Revalidation } from '../../../http/revalidation.ts'
import { nothingBeside, sql, type Reader, type Tx } from '../../../platform/database/database.ts'
import type { WrappedKey } from '../../../platform/secrets/signing-keys.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'
import type { Account } from '../accounts/accounts.ts'
import { maxRecordsColumn } from '../quotas/quotas.ts'

/** Everything that a commit needs to know of its account. */
export interface AccountSigner extends WrappedKey, Pick<Account, 'deactivatedAt' | 'takedownRef'> {
  /** Since when the account must not sign commits, because its identity may name another key; null if it may sign. */
  heldAt: Millis | null
  /** The record quota that an operator has set; null if none. */
  maxRecords: number | null
  /** As in `validColumn`. */
  valid: number
}

export const findSigner = <Row = unknown>(
  reader: Reader,
  did: Did,
  revalidation: Revalidation | null = null,
  { columns, tables } = nothingBeside,
): Promise<(Row & AccountSigner) | null> =>
  reader.get(sql`
    SELECT signing_key AS "signingKey", signing_key_wrapped AS wrapped, deactivated_at AS "deactivatedAt",
      account.takedown_ref AS "takedownRef", signing_held_at AS "heldAt", ${maxRecordsColumn} AS "maxRecords",
      ${validColumn(revalidation)}${columns}
    FROM account ${tables} WHERE account.did = ${did}`)

/** Returns 0 if the current key is no longer `before`. Ends a hold on signing, if there is one. */
export const updateSigningKey = (
  tx: Tx,
  did: Did,
  before: string,
  { signingKey, wrapped }: WrappedKey,
): Promise<number> =>
  tx.run(sql`
    UPDATE account SET signing_key = ${signingKey}, signing_key_wrapped = ${wrapped}, signing_held_at = NULL
    WHERE did = ${did} AND signing_key = ${before}`)

/** Store since when the account must not sign commits; null lets it sign. */
export const updateSigningHold = (tx: Tx, did: Did, heldAt: Millis | null): Promise<number> =>
  tx.run(sql`UPDATE account SET signing_held_at = ${heldAt} WHERE did = ${did}`)
