-- Events that were written and have no number yet, in the order in which they were written. Several nodes that share a
-- PostgreSQL database write them; one of them at a time numbers them and moves them to `repo_seq`. Empty on SQLite,
-- which numbers events as it writes them.
CREATE TABLE unnumbered_event (
  id INTEGER PRIMARY KEY,
  did TEXT NOT NULL,
  event_type TEXT NOT NULL,
  -- 1 if the earlier events of the account are deleted with this one.
  erases INTEGER NOT NULL,
  written_at INTEGER NOT NULL,
  -- The frame, in the three pieces around its number and its time.
  head BLOB NOT NULL,
  middle BLOB NOT NULL,
  rest BLOB NOT NULL
);

-- Frames do not compress, and are read whole.
ALTER TABLE unnumbered_event ALTER COLUMN rest SET STORAGE EXTERNAL;

-- Every row is deleted within milliseconds: cleaned up by count, not by a share of a table that is nearly empty.
ALTER TABLE unnumbered_event SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
  toast.autovacuum_vacuum_scale_factor = 0, toast.autovacuum_vacuum_threshold = 10000);

-- Retention deletes from a log that may have millions of rows, of which a fifth is too many to wait for.
ALTER TABLE repo_seq SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 10000);

-- One row that every batch of numbers updates: with room on its page, no update leaves it.
ALTER TABLE repo_seq_past SET (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
