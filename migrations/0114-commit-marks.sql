-- The last transaction that each writing connection of a node has committed: tells whether a COMMIT was made whose
-- answer was lost. Only used on PostgreSQL.
CREATE TABLE commit_mark (
  writer TEXT PRIMARY KEY,
  node TEXT NOT NULL,
  mark INTEGER NOT NULL
);
