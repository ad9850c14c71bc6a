/** Turns the tables of a database of SQLite into those of an earlier version, which the next start migrates. */

/** As they were before large values of records were stored apart (migration 590). */
export const beforeLargeRecords: readonly string[] = [
  `UPDATE record SET value = (SELECT large_record.value FROM large_record
     WHERE large_record.repo_id = record.repo_id AND large_record.path = record.path)
   WHERE length(value) = 0`,
  'DROP TABLE large_record',
  'ALTER TABLE repo DROP COLUMN has_large',
  'DELETE FROM schema_migration WHERE number = 590',
]
