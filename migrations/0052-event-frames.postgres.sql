-- No event is older than this on PostgreSQL.
ALTER TABLE repo_seq RENAME COLUMN event TO frame;
