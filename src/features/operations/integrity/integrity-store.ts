/** SQL of the tables `integrity_finding` and `integrity_round`. */
import { sql, sqlRows, type Reader, type Tx, type Writer } from '../../../platform/database/database.ts'
import type { Did, Handle, Millis } from '../../../protocol/identifiers.ts'

/** Replace the findings about a repository. Findings about its events stay. */
export async function putFindings(tx: Tx, did: Did, faults: readonly string[], now: Millis): Promise<void> {
  const isOfRepo = sql`did = ${did} AND part = 'repo'`
  const known = await tx.all<{ fault: string; foundAt: Millis }>(
    sql`SELECT fault, found_at AS "foundAt" FROM integrity_finding WHERE ${isOfRepo}`,
  )
  if (faults.length === 0 && known.length === 0) return
  const foundAt = new Map(known.map((row) => [row.fault, row.foundAt]))
  await tx.run(sql`DELETE FROM integrity_finding WHERE ${isOfRepo}`)
  const rows = [...new Set(faults)].map((fault) => [did, fault, foundAt.get(fault) ?? now, now])
  if (rows.length > 0)
    await tx.run(sql`INSERT INTO integrity_finding (did, fault, found_at, seen_at) VALUES ${sqlRows(rows)}`)
}

/** Add findings about events, each with its account. */
export async function putLogFindings(
  writer: Writer,
  found: readonly { did: Did; fault: string }[],
  now: Millis,
): Promise<void> {
  const rows = found.map(({ did, fault }) => [did, fault, now, now, 'log'])
  await writer.run(sql`
    INSERT INTO integrity_finding (did, fault, found_at, seen_at, part) VALUES ${sqlRows(rows)}
    ON CONFLICT (did, fault) DO UPDATE SET seen_at = excluded.seen_at`)
}

/** Forget findings about events that were not found again. */
export const forgetLogFindings = (writer: Writer, seenBefore: Millis): Promise<number> =>
  writer.run(sql`DELETE FROM integrity_finding WHERE part = 'log' AND seen_at < ${seenBefore}`)

export const countLogFindings = async (reader: Reader): Promise<number> =>
  (await reader.get<{ count: number }>(sql`SELECT count(*) AS count FROM integrity_finding WHERE part = 'log'`))!.count

export const forgetFindings = (tx: Tx, did: Did): Promise<number> =>
  tx.run(sql`DELETE FROM integrity_finding WHERE did = ${did}`)

/** How faults begin that only concern blobs, or references to them. */
const startsOfBlobs = [
  'the blob references of ',
  'whether blob ',
  'the bytes of blob ',
  'the bytes of a blob ',
  'blob ',
]

export const isOfBlobs = (fault: string): boolean => startsOfBlobs.some((start) => fault.startsWith(start))

/** Whether anything else than blobs and references to them is wrong with a repository. */
export async function mayLackRecords(reader: Reader, did: Did): Promise<boolean> {
  const rows = await reader.all<{ fault: string }>(
    sql`SELECT fault FROM integrity_finding WHERE did = ${did} AND part = 'repo'`,
  )
  return rows.some(({ fault }) => !isOfBlobs(fault))
}

export const hasFindings = async (reader: Reader, did: Did): Promise<boolean> =>
  (await reader.get(sql`SELECT 1 AS found FROM integrity_finding WHERE did = ${did} AND part = 'repo' LIMIT 1`)) !==
  null

/**
 * Returns damaged repositories that were last checked `ageMillis` ago, in this order. A time in the future was written
 * before the clock was set back.
 */
export async function damagedDids(reader: Reader, now: Millis, ageMillis: number, limit: number): Promise<Did[]> {
  const rows = await reader.all<{ did: Did }>(sql`
    SELECT did FROM integrity_finding WHERE part = 'repo' AND (seen_at <= ${now - ageMillis} OR seen_at > ${now})
    GROUP BY did ORDER BY max(seen_at), did LIMIT ${limit}`)
  return rows.map(({ did }) => did)
}

export interface DamagedRepo {
  did: Did
  handle: Handle | null
  faults: string[]
  /** When the first of its faults was found. */
  since: Millis
}

/** Returns repositories in which the last check found something, in order of their DIDs. */
export async function damagedRepos(reader: Reader, limit: number): Promise<DamagedRepo[]> {
  const rows = await reader.all<{ did: Did; handle: Handle | null; fault: string; since: Millis }>(sql`
    SELECT f.did, account.handle, f.fault, f.found_at AS since
    FROM integrity_finding f LEFT JOIN account ON account.did = f.did
    WHERE f.did IN (SELECT did FROM integrity_finding GROUP BY did ORDER BY did LIMIT ${limit})
    ORDER BY f.did, f.found_at, f.fault`)
  return Array.from(
    Map.groupBy(rows, ({ did }) => did),
    ([did, [first, ...others]]) => ({
      did,
      handle: first!.handle,
      faults: [first!, ...others].map(({ fault }) => fault),
      since: first!.since,
    }),
  )
}

export const countDamagedRepos = async (reader: Reader): Promise<number> =>
  (await reader.get<{ count: number }>(sql`SELECT count(DISTINCT did) AS count FROM integrity_finding`))!.count

/** Returns accounts without a repository whose DIDs follow one, up to and including another (null: to the last). */
export async function accountsWithoutRepo(
  reader: Reader,
  after: string,
  upTo: Did | null,
  limit: number,
): Promise<Did[]> {
  const rows = await reader.all<{ did: Did }>(sql`
    SELECT did FROM account WHERE did > ${after} AND ${upTo === null ? sql`1 = 1` : sql`did <= ${upTo}`}
      AND NOT EXISTS (SELECT 1 FROM repo WHERE repo.did = account.did)
    ORDER BY did LIMIT ${limit}`)
  return rows.map(({ did }) => did)
}

export interface IntegrityRound {
  beganAt: Millis
  /** The last repository that was checked; empty at the beginning of the round. */
  after: string
  /** How many repositories were checked in this round. */
  repos: number
  endedAt: Millis | null
  /** The last round that was completed. */
  completedAt: Millis | null
  completedRepos: number | null
  /** Number of the last event whose repository was checked. */
  seq: number
  /** Number of the last event that was itself checked. */
  logSeq: number
}

const ROUND = 1

export const currentIntegrityRound = (reader: Reader): Promise<IntegrityRound | null> =>
  reader.get<IntegrityRound>(sql`
    SELECT began_at AS "beganAt", after_did AS after, repos, ended_at AS "endedAt", completed_at AS "completedAt",
      completed_repos AS "completedRepos", seq, log_seq AS "logSeq"
    FROM integrity_round WHERE id = ${ROUND}`)

export async function putIntegrityRound(writer: Writer, round: IntegrityRound): Promise<void> {
  const { beganAt, after, repos, endedAt, completedAt, completedRepos, seq, logSeq } = round
  await writer.run(sql`
    INSERT INTO integrity_round (id, began_at, after_did, repos, ended_at, completed_at, completed_repos, seq, log_seq)
    VALUES (${ROUND}, ${beganAt}, ${after}, ${repos}, ${endedAt}, ${completedAt}, ${completedRepos}, ${seq}, ${logSeq})
    ON CONFLICT (id) DO UPDATE SET began_at = excluded.began_at, after_did = excluded.after_did,
      repos = excluded.repos, ended_at = excluded.ended_at, completed_at = excluded.completed_at,
      completed_repos = excluded.completed_repos, seq = excluded.seq, log_seq = excluded.log_seq`)
}
