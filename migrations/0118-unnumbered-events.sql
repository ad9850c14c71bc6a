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
