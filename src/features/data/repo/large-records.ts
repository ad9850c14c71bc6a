/**
 * The SQL of table `large_record`, and the only place that knows which values it has.
 *
 * A table without row ids, as `record` is, has values beside keys, and SQLite reads all of a value that does not fit on
 * its page for each key that it compares. So it sets large values aside, in a table with row ids: the row of the record
 * has an empty value then, which no record has. PostgreSQL keeps large values apart anyway. Nothing is set aside there,
 * also because servers of the version before may use the same database; what was copied from SQLite is read the same.
 */
import {
  firstBytes,
  inPieces,
  sql,
  sqlList,
  sqlRows,
  type Database,
  type Reader,
  type Sql,
  type Tx,
} from '../../../platform/database/database.ts'

/**
 * Bytes of the largest value that stays beside its key. Among thousands of these, reading a record takes 24 µs more
 * than among posts, which doubles the time of a getRecord; 58 µs at twice as many bytes, and 1.6 ms at 800 kB.
 */
const MAX_BYTES_BESIDE_KEY = 8 * 1024

/** Whether this database sets large values aside: SQLite does. */
export const setsLargeAside = ({ dialect }: Pick<Database, 'dialect'>): boolean => dialect.name === 'sqlite'

const isLarge = ({ value }: { value: Uint8Array }): boolean => value.length > MAX_BYTES_BESIDE_KEY

const noBytes = new Uint8Array()

const ofRecord = sql`FROM large_record WHERE large_record.repo_id = record.repo_id AND large_record.path = record.path`

/**
 * The value of a row of `record`, and its length, for which nothing of a large one is read. If a large value is lost,
 * they are those of the row: empty.
 */
export const recordValue = sql`CASE WHEN length(record.value) > 0 THEN record.value
  ELSE COALESCE((SELECT large_record.value ${ofRecord}), record.value) END`
export const recordBytes = sql`CASE WHEN length(record.value) > 0 THEN length(record.value)
  ELSE COALESCE((SELECT length(large_record.value) ${ofRecord}), 0) END`

export interface RecordValue {
  path: string
  value: Uint8Array
}

/** What stands beside the key of a record. */
export const valueBesideKey = (record: RecordValue): Uint8Array => (isLarge(record) ? noBytes : record.value)

/** Those that are set aside. */
export const largeAmong = <Value extends RecordValue>(records: readonly Value[]): Value[] => records.filter(isLarge)

/** Set aside the large values among those of records that are stored. */
export async function putLargeRecords(tx: Tx, repoId: number, records: readonly RecordValue[]): Promise<void> {
  for (const piece of inPieces(largeAmong(records)))
    await tx.run(sql`
      INSERT INTO large_record (repo_id, path, value) VALUES ${sqlRows(piece.map(({ path, value }) => [repoId, path, value]))}
      ON CONFLICT (repo_id, path) DO UPDATE SET value = excluded.value`)
}

/** Delete what was set aside of records that are deleted, or get a value that is not. */
export async function deleteLargeRecords(tx: Tx, repoId: number, paths: readonly string[]): Promise<void> {
  if (paths.length === 0) return
  await tx.run(sql`DELETE FROM large_record WHERE repo_id = ${repoId} AND path IN ${sqlList(paths)}`)
}

/** Delete at most `limit` values, and few if they are large. Returns how many, 0 if there were none. */
export function deleteSomeLargeRecords(tx: Tx, repoId: number, limit: number): Promise<number> {
  const some = sql`
    SELECT path, length(value) AS bytes FROM large_record WHERE repo_id = ${repoId} ORDER BY path LIMIT ${limit}`
  return tx.run(sql`DELETE FROM large_record WHERE repo_id = ${repoId} AND path IN ${firstBytes(sql`path`, some)}`)
}

/** Whether a repository has large values, 1 or 0, as a value of a statement. */
export const hasLargeRecords = (repoId: Sql): Sql =>
  sql`(SELECT count(*) FROM (SELECT 1 FROM large_record WHERE repo_id = ${repoId} LIMIT 1) AS found)`

/** Paths after one, up to another and with it, that have a large value although no record there says so. */
export async function findStrayValues(
  reader: Reader,
  repoId: number,
  { after, upTo }: { after: string; upTo: string },
): Promise<string[]> {
  const rows = await reader.all<{ path: string }>(sql`
    SELECT path FROM large_record WHERE repo_id = ${repoId} AND path > ${after} AND path <= ${upTo}
      AND NOT EXISTS (SELECT 1 FROM record
        WHERE record.repo_id = ${repoId} AND record.path = large_record.path AND length(record.value) = 0)`)
  return rows.map(({ path }) => path)
}

/**
 * Set aside what a database of SQLite has beside keys, as the migration did: it may have come from PostgreSQL. Does
 * nothing on PostgreSQL.
 */
export async function setLargeRecordsAside(db: Database): Promise<void> {
  if (!setsLargeAside(db)) return
  const isBesideKey = sql`length(value) > ${MAX_BYTES_BESIDE_KEY}`
  await db.transaction(async (tx) => {
    await tx.run(sql`
      INSERT INTO large_record (repo_id, path, value)
      SELECT repo_id, path, value FROM record WHERE ${isBesideKey} ORDER BY repo_id, path
      ON CONFLICT (repo_id, path) DO UPDATE SET value = excluded.value`)
    await tx.run(sql`UPDATE record SET value = ${noBytes} WHERE ${isBesideKey}`)
    await tx.run(sql`UPDATE repo SET has_large = 1 WHERE id IN (SELECT repo_id FROM large_record)`)
  })
}
