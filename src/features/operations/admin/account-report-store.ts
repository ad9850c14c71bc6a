/** Account reports for operators. The queries read the tables of several features and change none of them. */
import { sql, sqlAnd, type Reader, type Sql } from '../../../platform/database/database.ts'
import { DAY_MILLIS } from '../../../base/durations.ts'
import { spaceBlobs } from '../../data/blobs/blobs.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'
import { nextTid } from '../../../protocol/tid.ts'
import { maxBlobBytesColumn } from '../../identity/quotas/quotas.ts'
import { eventNumbersOf } from '../../data/firehose/firehose.ts'
import { flaggedDids, isFlagged } from '../../data/labels/labels.ts'
import { recordTotals } from '../../data/repo/repo.ts'

export const statuses = ['active', 'deactivated', 'suspended', 'takendown'] as const
export type ReportedStatus = (typeof statuses)[number]

/** No account matches `suspended`: nothing suspends accounts yet, but the state is part of the interface. */
const statusConditions: Record<ReportedStatus, Sql> = {
  takendown: sql`takedown_ref IS NOT NULL`,
  suspended: sql`1 = 0`,
  deactivated: sql`takedown_ref IS NULL AND deactivated_at IS NOT NULL`,
  active: sql`takedown_ref IS NULL AND deactivated_at IS NULL`,
}

export interface AccountRow {
  did: Did
  handle: string | null
  createdAt: Millis
  deactivatedAt: Millis | null
  takedownRef: string | null
  flagged: 0 | 1
  totalBytes: number
  /** The blob quota that was set for the account or for all accounts; null if none was. */
  maxBlobBytes: number | null
  /** Whether this server serves the account's did:web document. */
  isHosted: 0 | 1
}

export interface AccountFilter {
  status: ReportedStatus | null
  /** Substring of the handle, DID or email address, compared case-insensitively. Null matches every account. */
  text: string | null
  after: { flagged: 0 | 1; did: string } | null
}

/**
 * Returns at most `limit` accounts that match the filter, flagged accounts first, then in the order of their DIDs.
 * Stops reading once it has found enough.
 */
export async function listAccounts(
  reader: Reader,
  { status, text, after }: AccountFilter,
  now: Millis,
  limit: number,
): Promise<AccountRow[]> {
  const conditions: Sql[] = []
  if (status !== null) conditions.push(statusConditions[status])
  if (text !== null) {
    const pattern = `%${text.toLowerCase().replace(/[%_\\]/g, '\\$&')}%`
    conditions.push(
      sql`(handle LIKE ${pattern} ESCAPE '\\' OR lower(did) LIKE ${pattern} ESCAPE '\\' OR email LIKE ${pattern} ESCAPE '\\')`,
    )
  }
  // Choose the accounts of the page in a subquery, so that the other columns are computed for these alone.
  const page = (flagged: 0 | 1, restriction: Sql, most: number): Promise<AccountRow[]> =>
    reader.all<AccountRow>(sql`
      SELECT did, handle, created_at AS "createdAt", deactivated_at AS "deactivatedAt", takedown_ref AS "takedownRef",
        CAST(${flagged} AS INTEGER) AS flagged,
        (SELECT CAST(coalesce(sum(size), 0) AS BIGINT) FROM blob WHERE blob.did = account.did) AS "totalBytes",
        ${maxBlobBytesColumn} AS "maxBlobBytes",
        CASE WHEN EXISTS (SELECT 1 FROM web_document w WHERE w.did = account.did AND w.hosted_since IS NOT NULL) THEN 1 ELSE 0 END AS "isHosted"
      FROM account WHERE did IN (
        SELECT did FROM account
        WHERE ${sqlAnd([...conditions, restriction, sql`did > ${after?.flagged === flagged ? after.did : ''}`])}
        ORDER BY did LIMIT ${most})
      ORDER BY did`)
  const flagged = after?.flagged === 0 ? [] : await page(1, sql`did IN (${flaggedDids(now)})`, limit)
  const most = limit - flagged.length
  return most === 0 ? flagged : [...flagged, ...(await page(0, sql`NOT ${isFlagged(sql`account.did`, now)}`, most))]
}

/** Count the accounts in each status, and in total. Reads all accounts. */
export async function countAccounts(reader: Reader): Promise<Record<ReportedStatus | 'total', number>> {
  const countOf = (status: ReportedStatus) => sql`count(CASE WHEN ${statusConditions[status]} THEN 1 END)`
  const row = await reader.get<Record<ReportedStatus | 'total', number>>(sql`
    SELECT count(*) AS total, ${countOf('active')} AS active, ${countOf('deactivated')} AS deactivated,
      ${countOf('suspended')} AS suspended, ${countOf('takendown')} AS takendown FROM account`)
  return row!
}

/** Totals of the blobs of a DID. */
export interface OwnedBlobs {
  did: Did
  count: number
  bytes: number
  /** 1 if the DID has an account here, otherwise 0. */
  isOwned: number
}

/** Returns the totals of the blobs of at most `limit` DIDs that follow a DID. */
export const listOwnedBlobs = (reader: Reader, after: string, limit: number): Promise<OwnedBlobs[]> =>
  reader.all(sql`
    SELECT did, count(*) AS count, CAST(sum(size) AS BIGINT) AS bytes,
      CASE WHEN EXISTS (SELECT 1 FROM account WHERE account.did = blob.did) THEN 1 ELSE 0 END AS "isOwned"
    FROM blob WHERE did > ${after} GROUP BY did ORDER BY did LIMIT ${limit}`)

export interface StorageRow {
  blobCount: number
  totalBytes: number
  largestCid: string | null
  largestSize: number | null
}

/**
 * Returns the blob storage of an account. Blobs in spaces are counted, but must not be named: `largestCid` and
 * `largestSize` (bytes) are null if the account has no other blobs.
 */
export async function storageOf(reader: Reader, did: Did): Promise<StorageRow> {
  const isNamed = sql`did = ${did} AND NOT ${spaceBlobs.areAlone()}`
  const row = await reader.get<StorageRow>(sql`
    SELECT count(*) AS "blobCount", CAST(coalesce(sum(size), 0) AS BIGINT) AS "totalBytes",
      (SELECT cid FROM blob WHERE ${isNamed} ORDER BY size DESC, cid LIMIT 1) AS "largestCid",
      (SELECT max(size) FROM blob WHERE ${isNamed}) AS "largestSize"
    FROM blob WHERE did = ${did}`)
  return row!
}

export interface UsageRow {
  recordsCount: number
  /** Number of commits that the event log still holds. */
  commitsCount: number
  blobsCount: number
  storageBytes: number
  /** When the newest existing record was written; null if there are none. */
  lastActive: Millis | null
}

/** Returns the usage of an account. The counts are zero if no account has the DID. */
export async function usageOf(reader: Reader, did: Did): Promise<UsageRow> {
  const row = await reader.get<UsageRow>(sql`
    SELECT ${recordTotals.within(sql`${did}`)} AS "recordsCount",
      (SELECT count(*) FROM repo_seq WHERE seq IN (${eventNumbersOf(did)}) AND event_type = 'commit')
        + (SELECT count(*) FROM unnumbered_event WHERE unnumbered_event.did = ${did} AND event_type = 'commit') AS "commitsCount",
      (SELECT count(*) FROM blob WHERE blob.did = ${did}) AS "blobsCount",
      (SELECT CAST(coalesce(sum(size), 0) AS BIGINT) FROM blob WHERE blob.did = ${did}) AS "storageBytes",
      ${recordTotals.newestWithin(sql`${did}`)} AS "lastActive"`)
  return row!
}

export interface GrowthDay {
  /** Such as `2026-01-31`. */
  day: string
  accounts: number
  blobs: number
  blobBytes: number
}

/** Count the accounts and blobs added on each day from `first` to `last`, in days since 1970. Scans all blobs. */
export async function countGrowth(reader: Reader, first: number, last: number): Promise<GrowthDay[]> {
  const from = first * DAY_MILLIS
  const dayOf = (column: Sql) => sql`CAST(floor(${column} / ${DAY_MILLIS}) AS BIGINT)`
  const accounts = await reader.all<{ day: number; count: number }>(sql`
    SELECT ${dayOf(sql`created_at`)} AS day, count(*) AS count FROM account WHERE created_at >= ${from} GROUP BY 1`)
  const blobs = await reader.all<{ day: number; count: number; bytes: number }>(sql`
    SELECT ${dayOf(sql`uploaded_at`)} AS day, count(*) AS count, CAST(coalesce(sum(size), 0) AS BIGINT) AS bytes
    FROM blob WHERE uploaded_at >= ${from} GROUP BY 1`)
  const accountsOn = new Map(accounts.map(({ day, count }) => [day, count]))
  const blobsOn = new Map(blobs.map((row) => [row.day, row]))
  return Array.from({ length: last - first + 1 }, (_, i) => {
    const day = first + i
    const { count = 0, bytes = 0 } = blobsOn.get(day) ?? {}
    return {
      day: new Date(day * DAY_MILLIS).toISOString().slice(0, 10),
      accounts: accountsOn.get(day) ?? 0,
      blobs: count,
      blobBytes: bytes,
    }
  })
}

/** Accounts whose repository changed in the last days. */
export interface Activity {
  day: number
  week: number
  month: number
}

/** Count accounts by the revisions of their repositories, which begin with the time. Reads all repositories. */
export async function countActive(reader: Reader, now: Millis): Promise<Activity> {
  const since = (days: number) => nextTid(null, (now - days * DAY_MILLIS) * 1000, 0)
  const row = await reader.get<Activity>(sql`
    SELECT CAST(coalesce(sum(CASE WHEN rev >= ${since(1)} THEN 1 ELSE 0 END), 0) AS BIGINT) AS day,
      CAST(coalesce(sum(CASE WHEN rev >= ${since(7)} THEN 1 ELSE 0 END), 0) AS BIGINT) AS week, count(*) AS month
    FROM repo WHERE did IS NOT NULL AND rev >= ${since(30)}`)
  return row!
}

/**
 * Count the commits, nodes and records of all repositories. Scans an index of each table, so do not call it for every
 * request.
 */
export async function countBlocks(reader: Reader): Promise<number> {
  const row = await reader.get<{ blocks: number }>(sql`
    SELECT (SELECT count(*) FROM repo) + (SELECT count(*) FROM repo_node) + (SELECT count(*) FROM record) AS blocks`)
  return row!.blocks
}

/** Whether an account has a handle under a domain, or is about to get one. Reads all accounts. */
export const hasHandleUnder = async (reader: Reader, domain: string): Promise<boolean> =>
  (await reader.get(sql`
    SELECT 1 WHERE EXISTS (SELECT 1 FROM account WHERE handle LIKE ${`%.${domain}`})
      OR EXISTS (SELECT 1 FROM further_handle WHERE handle LIKE ${`%.${domain}`})
      OR EXISTS (SELECT 1 FROM name_claim WHERE handle LIKE ${`%.${domain}`})
      OR EXISTS (SELECT 1 FROM name_reservation WHERE handle LIKE ${`%.${domain}`} AND email IS NOT NULL)`)) !== null
