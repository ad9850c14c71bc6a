/** Rows of `account_flag`: the labels on hosted accounts. */
import { sql, sqlList, sqlRows, type Reader, type Sql, type Tx } from '../../../platform/database/database.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'
import type { AccountLabel } from './account-labels.ts'

export interface Flag extends AccountLabel {
  labeler: Did
}

/** Maximum number of rows per statement. */
const CHUNK_ROWS = 500

const columns = sql`labeler, did, val, labelled_at AS "labelledAt", expires_at AS "expiresAt"`

/** Condition: the flag has not expired. */
const holds = (now: Millis): Sql => sql`(expires_at IS NULL OR expires_at > ${now})`

/** Returns the unexpired flags on the given accounts, ordered by DID, then oldest label first. */
export const findFlags = (reader: Reader, dids: readonly Did[], now: Millis): Promise<Flag[]> =>
  reader.all(
    sql`SELECT ${columns} FROM account_flag WHERE did IN ${sqlList(dids)} AND ${holds(now)} ORDER BY did, labelled_at, val`,
  )

/** Condition: the account has a flag that has not expired. `did` is a column that holds a DID. */
export const isFlagged = (did: Sql, now: Millis): Sql =>
  sql`EXISTS (SELECT 1 FROM account_flag WHERE account_flag.did = ${did} AND ${holds(now)})`

/** For queries: the DIDs that have a flag which has not expired. */
export const flaggedDids = (now: Millis): Sql => sql`SELECT did FROM account_flag WHERE ${holds(now)}`

/** The cost grows with the number of flags, not with the number of accounts. */
export const countFlaggedAccounts = async (reader: Reader, now: Millis): Promise<number> =>
  (await reader.get<{ count: number }>(sql`
    SELECT count(*) AS count FROM (SELECT DISTINCT did FROM (${flaggedDids(now)}) AS held) AS flagged
    WHERE EXISTS (SELECT 1 FROM account WHERE account.did = flagged.did)`))!.count

/** Returns all flags of a labeler, including expired ones. */
export const findFlagsBy = (reader: Reader, labeler: Did): Promise<Flag[]> =>
  reader.all(sql`SELECT ${columns} FROM account_flag WHERE labeler = ${labeler}`)

/** Returns those of `dids` that still have an account here. `dids` must not be empty. */
export async function accountsAmong(reader: Reader, dids: readonly Did[]): Promise<Set<Did>> {
  const rows = await reader.all<{ did: Did }>(sql`SELECT did FROM account WHERE did IN ${sqlList(dids)}`)
  return new Set(rows.map(({ did }) => did))
}

export async function putFlags(tx: Tx, flags: readonly Flag[]): Promise<void> {
  for (let start = 0; start < flags.length; start += CHUNK_ROWS) {
    const rows = flags
      .slice(start, start + CHUNK_ROWS)
      .map(({ labeler, did, val, labelledAt, expiresAt }) => [labeler, did, val, labelledAt, expiresAt])
    await tx.run(sql`
      INSERT INTO account_flag (labeler, did, val, labelled_at, expires_at) VALUES ${sqlRows(rows)}
      ON CONFLICT (labeler, did, val) DO UPDATE SET labelled_at = excluded.labelled_at, expires_at = excluded.expires_at`)
  }
}

export const deleteFlag = (tx: Tx, { labeler, did, val }: Flag): Promise<number> =>
  tx.run(sql`DELETE FROM account_flag WHERE labeler = ${labeler} AND did = ${did} AND val = ${val}`)

/** Delete the flags of all labelers on an account. Returns how many there were. */
export const deleteFlagsAbout = (tx: Tx, did: Did): Promise<number> =>
  tx.run(sql`DELETE FROM account_flag WHERE did = ${did}`)

/** Delete the flags of all labelers that are not listed. Returns how many there were. */
export const deleteFlagsOfOthers = (tx: Tx, labelers: readonly Did[]): Promise<number> =>
  tx.run(sql`DELETE FROM account_flag WHERE labeler NOT IN ${sqlList(labelers)}`)

/** Returns a page of hosted accounts in any state, in the order of their DIDs. Empty after the last one. */
export async function accountPage(reader: Reader, after: Did | '', limit: number): Promise<Did[]> {
  const rows = await reader.all<{ did: Did }>(
    sql`SELECT did FROM account WHERE did > ${after} ORDER BY did LIMIT ${limit}`,
  )
  return rows.map(({ did }) => did)
}
