-- Work that runs one at a time at all servers which share a database, and involves the world outside. Empty on SQLite.
CREATE TABLE lane (
  name TEXT PRIMARY KEY,
  -- Node that is at work, and which of its turns this is.
  holder TEXT NOT NULL,
  turn TEXT NOT NULL,
  -- The turn is over then, whatever became of it.
  until INTEGER NOT NULL
);
