-- For databases that come from SQLite, which lists events by account. PostgreSQL keeps its index on accounts.
CREATE TABLE repo_seq_run (
  run INTEGER NOT NULL,
  did TEXT NOT NULL,
  seq INTEGER NOT NULL,
  PRIMARY KEY (run, did, seq)
);

ALTER TABLE repo_seq_past ADD COLUMN listed_through INTEGER NOT NULL DEFAULT 0;
