/**
 * The SQL of table `large_record`, and the only place that knows which values it holds.
 *
 * The table `record` has no row ids, so SQLite stores values beside keys, and reads a value that does not fit on its
 * page for each key that it compares. On SQLite, large values are therefore set aside in a table with row ids. The row
 * of such a record has an empty value, which no real record has. PostgreSQL keeps large values apart itself, so nothing
 * is set aside there, also because servers of the version before may use the same database. Values that were copied
 * there from SQLite are read in the same way.
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
 * Bytes of the largest value that stays beside its key. Reading a record among thousands of this size takes 24 µs
 * longer than among posts, which doubles the time of a getRecord; 58 µs longer among records of twice this size, and
 * 1.6 ms at 800 kB.
 */
const MAX_BYTES_BESIDE_KEY = 8 * 1024

/** Whether this database sets large values aside: SQLite does. */
export const setsLargeAside = ({ dialect }: Pick<Database, 'dialect'>): boolean => dialect.name === 'sqlite'

const isLarge = ({ value }: { value: Uint8Array }): boolean => value.length > MAX_BYTES_BESIDE_KEY

const noBytes = new Uint8Array()

const ofRecord = sql`FROM large_record WHERE large_record.repo_id = record.repo_id AND large_record.path = record.path`

/**
 * SQL: the value of a row of `record`, and its length, for which a large value is not read. If a large value is lost,
 * the value is empty and the length 0.
 */
export const recordValue = sql`CASE WHEN length(record.value) > 0 THEN record.value
  ELSE COALESCE((SELECT large_record.value ${ofRecord}), record.value) END`
export const recordBytes = sql`CASE WHEN length(record.value) > 0 THEN length(record.value)
  ELSE COALESCE((SELECT length(large_record.value) ${ofRecord}), 0) END`

export interface RecordValue {
  path: string
  value: Uint8Array
}

/** The value to store beside the key of a record: empty if the value is set aside. */
export const valueBesideKey = (record: RecordValue): Uint8Array => (isLarge(record) ? noBytes : record.value)

/** The records whose values are set aside. */
export const largeAmong = <Value extends RecordValue>(records: readonly Value[]): Value[] => records.filter(isLarge)

/** Set aside the large values of records that are being stored. */
export async function putLargeRecords(tx: Tx, repoId: number, records: readonly RecordValue[]): Promise<void> {
  for (const piece of inPieces(largeAmong(records)))
    await tx.run(sql`
      INSERT INTO large_record (repo_id, path, value) VALUES ${sqlRows(piece.map(({ path, value }) => [repoId, path, value]))}
      ON CONFLICT (repo_id, path) DO UPDATE SET value = excluded.value`)
}

/** Delete the large values at these paths, whose records are being deleted or get a small value. */
export async function deleteLargeRecords(tx: Tx, repoId: number, paths: readonly string[]): Promise<void> {
  if (paths.length === 0) return
  await tx.run(sql`DELETE FROM large_record WHERE repo_id = ${repoId} AND path IN ${sqlList(paths)}`)
}

/** Delete at most `limit` values, and fewer if they are large. Returns how many; 0 if there were none. */
export function deleteSomeLargeRecords(tx: Tx, repoId: number, limit: number): Promise<number> {
  const some = sql`
    SELECT path, length(value) AS bytes FROM large_record WHERE repo_id = ${repoId} ORDER BY path LIMIT ${limit}`
  return tx.run(sql`DELETE FROM large_record WHERE repo_id = ${repoId} AND path IN ${firstBytes(sql`path`, some)}`)
}

/** SQL: 1 if the repository has large values, otherwise 0. */
export const hasLargeRecords = (repoId: Sql): Sql =>
  sql`(SELECT count(*) FROM (SELECT 1 FROM large_record WHERE repo_id = ${repoId} LIMIT 1) AS found)`

/** Returns the paths after `after`, up to and including `upTo`, with a large value to which no record refers. */
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
 * Set aside the large values that a SQLite database has beside keys, as the migration did: the database may have been
 * copied from PostgreSQL. Does nothing on PostgreSQL.
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
