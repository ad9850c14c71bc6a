-- The numbers of events by account, for deletions. Runs of numbers are listed one after another, some hundred events at a
-- time: an index on the log would write a page for each event. Events above `listed_through` are not listed yet.
CREATE TABLE repo_seq_run (
  run INTEGER NOT NULL,
  did TEXT NOT NULL,
  seq INTEGER NOT NULL,
  PRIMARY KEY (run, did, seq)
) WITHOUT ROWID;

ALTER TABLE repo_seq_past ADD COLUMN listed_through INTEGER NOT NULL DEFAULT 0;

-- First, so that the next statement reads the log in its order, which is that of the runs.
DROP INDEX repo_seq_did;

-- A fault ends the whole migration anyway; with ABORT SQLite would keep every page as it was, in memory.
INSERT OR ROLLBACK INTO repo_seq_run (run, did, seq) SELECT seq / 4096, did, seq FROM repo_seq ORDER BY seq;

UPDATE repo_seq_past SET listed_through = (SELECT coalesce(max(seq), 0) FROM repo_seq);
