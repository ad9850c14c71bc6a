-- Indices on what is random, or grows at many places, have each record change a page of its own. New records are left out
-- of them at first, and are added many at a time. Rows that are older than this are all there.
ALTER TABLE record ADD COLUMN unlisted INTEGER;
-- At least as many records of the repository are left out.
ALTER TABLE repo ADD COLUMN unlisted_count INTEGER NOT NULL DEFAULT 0;

DROP INDEX record_cid;
DROP INDEX record_rev;
CREATE INDEX record_cid ON record (repo_id, cid) WHERE unlisted IS NULL;
CREATE INDEX record_rev ON record (repo_id, rev) WHERE unlisted IS NULL;
CREATE INDEX record_unlisted ON record (repo_id, rev) WHERE unlisted IS NOT NULL;
