-- The last completed pass of each sweep, for all servers that share a database. On SQLite, the server remembers it itself.
CREATE TABLE sweep_report (
  name TEXT PRIMARY KEY,
  completed_at INTEGER NOT NULL,
  -- Node that made the pass.
  node TEXT NOT NULL,
  -- JSON
  report TEXT NOT NULL
);
