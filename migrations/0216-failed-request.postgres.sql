-- The last requests that failed or were refused at the nodes of a cluster. On SQLite the server keeps them in memory, and
-- this table stays empty. On PostgreSQL it is not logged.
CREATE UNLOGGED TABLE failed_request (
  id TEXT PRIMARY KEY,
  at INTEGER NOT NULL,
  method TEXT NOT NULL,
  route TEXT NOT NULL,
  status INTEGER NOT NULL,
  error TEXT NOT NULL
);
CREATE INDEX failed_request_at ON failed_request (at, id);
