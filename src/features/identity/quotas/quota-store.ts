/** SQL of quotas: columns in the row of an account, and table `default_quota`, which has at most one row. */
import { sql, type Reader, type Sql, type Tx } from '../../../platform/database/database.ts'
import type { Stored } from '../mails/mails.ts'
import type { Did } from '../../../protocol/identifiers.ts'

/** Quotas that were set. 0: no limit. Null: not set. */
export interface SetQuota {
  records: number | null
  blobBytes: number | null
}

/** Column expressions for queries of `account`: the quota that was set for the account, or else for all accounts. */
export const maxRecordsColumn = sql`COALESCE(account.max_records, (SELECT max_records FROM default_quota))`
export const maxBlobBytesColumn = sql`COALESCE(account.max_blob_bytes, (SELECT max_blob_bytes FROM default_quota))`

/** The quota of blobs that was set for an account, as an expression for any query. */
export const maxBlobBytesOf = (did: Did): Sql =>
  sql`(SELECT ${maxBlobBytesColumn} FROM account WHERE account.did = ${did})`

/** Warnings that were sent before the quota was changed no longer count. */
const noWarnings = sql`records_warned_percent = NULL, blobs_warned_percent = NULL`

const notSet: SetQuota = { records: null, blobBytes: null }

/** The quota that was set for the account, or else for all accounts. */
export const findQuota = async (reader: Reader, did: Did): Promise<SetQuota> =>
  (await reader.get<SetQuota>(sql`
    SELECT ${maxRecordsColumn} AS records, ${maxBlobBytesColumn} AS "blobBytes" FROM account WHERE did = ${did}`)) ??
  notSet

/** The quota that was set for this account only. */
export const findOwnQuota = async (reader: Reader, did: Did): Promise<SetQuota> =>
  (await reader.get<SetQuota>(sql`
    SELECT max_records AS records, max_blob_bytes AS "blobBytes" FROM account WHERE did = ${did}`)) ?? notSet

/** The quota that was set for all accounts. */
export const findDefaultQuota = async (reader: Reader): Promise<SetQuota> =>
  (await reader.get<SetQuota>(
    sql`SELECT max_records AS records, max_blob_bytes AS "blobBytes" FROM default_quota WHERE id = 1`,
  )) ?? notSet

/** Returns 0 if there is no such account. */
export const updateOwnQuota = (tx: Tx, did: Did, { records, blobBytes }: SetQuota): Promise<number> =>
  tx.run(sql`
    UPDATE account SET max_records = ${records}, max_blob_bytes = ${blobBytes}, ${noWarnings}
    WHERE did = ${did}`)

export async function updateDefaultQuota(tx: Tx, { records, blobBytes }: SetQuota): Promise<number> {
  await tx.run(sql`
    UPDATE account SET ${noWarnings} WHERE records_warned_percent IS NOT NULL OR blobs_warned_percent IS NOT NULL`)
  return tx.run(sql`
    INSERT INTO default_quota (id, max_records, max_blob_bytes) VALUES (1, ${records}, ${blobBytes})
    ON CONFLICT (id) DO UPDATE SET max_records = excluded.max_records, max_blob_bytes = excluded.max_blob_bytes`)
}

const warnedColumns: Record<Stored, Sql> = {
  records: sql`records_warned_percent`,
  blobs: sql`blobs_warned_percent`,
}

/** Note that the account holder is warned of a share of the quota. Returns 0 if the holder was warned of it before. */
export const raiseWarning = (tx: Tx, did: Did, what: Stored, percent: number): Promise<number> =>
  tx.run(sql`
    UPDATE account SET ${warnedColumns[what]} = ${percent}
    WHERE did = ${did} AND COALESCE(${warnedColumns[what]}, 0) < ${percent}`)
