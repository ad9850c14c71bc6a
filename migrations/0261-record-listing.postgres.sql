-- For databases that come from SQLite. On PostgreSQL, indices have all records at once; these stay as they were.
ALTER TABLE record ADD COLUMN unlisted INTEGER;
ALTER TABLE repo ADD COLUMN unlisted_count INTEGER NOT NULL DEFAULT 0;

CREATE INDEX record_unlisted ON record (repo_id, rev) WHERE unlisted IS NOT NULL;
