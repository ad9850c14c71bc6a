-- Servers that share a PostgreSQL database. Instants are of the database's clock, which the nodes agree on.
CREATE TABLE node (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  version TEXT NOT NULL,
  started_at INTEGER NOT NULL,
  heartbeat_at INTEGER NOT NULL
);

-- What one node at a time does. The number grows with every change of the holder, and fences off the holder before.
CREATE TABLE lease (
  name TEXT PRIMARY KEY,
  fence INTEGER NOT NULL,
  holder TEXT NOT NULL,
  taken_at INTEGER NOT NULL
);
