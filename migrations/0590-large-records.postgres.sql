-- PostgreSQL keeps large values apart from their rows. The table has rows only if the database was copied from SQLite.
CREATE TABLE large_record (
  repo_id INTEGER NOT NULL,
  path TEXT NOT NULL,
  value BLOB NOT NULL,
  PRIMARY KEY (repo_id, path)
);
ALTER TABLE large_record ALTER COLUMN value SET STORAGE EXTERNAL;
ALTER TABLE repo ADD COLUMN has_large INTEGER NOT NULL DEFAULT 0;
