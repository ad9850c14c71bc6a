-- Which copy of the database the nodes have agreed on. After a failover or a restore, another one answers, which may lack
-- what the one before had acknowledged. Only used on PostgreSQL.
CREATE TABLE database_history (
  id INTEGER PRIMARY KEY,
  -- Rises whenever the nodes go on with another copy, and whenever a server has the database for itself.
  generation INTEGER NOT NULL,
  -- That copy: the server, the timeline of its log, the database and this table, as PostgreSQL numbers them.
  agreed TEXT NOT NULL,
  -- What a node missed that it knew to be durable. Nobody numbers events until the nodes agree on what is left.
  lost TEXT,
  -- The newest event that was there when they did last.
  kept_through INTEGER
);

-- Counts the signs of life of a node. A node that finds fewer than it gave knows that the database went back in time.
ALTER TABLE node ADD COLUMN beats INTEGER NOT NULL DEFAULT 0;
