-- Own quotas of an account. NULL: that of all accounts applies. 0: no limit.
ALTER TABLE account ADD COLUMN max_records INTEGER;
ALTER TABLE account ADD COLUMN max_blob_bytes INTEGER;
-- Quotas of all accounts without one of their own, in one row. NULL: what the configuration says.
CREATE TABLE default_quota (
  id INTEGER PRIMARY KEY,
  max_records INTEGER,
  max_blob_bytes INTEGER
);
-- Number of records that the repository had at revision `counted_rev`. If that is not its revision, it is not known.
ALTER TABLE repo ADD COLUMN record_count INTEGER;
ALTER TABLE repo ADD COLUMN counted_rev TEXT;
