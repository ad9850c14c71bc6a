-- What operators have been told of, and what is about to be told. One row for each alert and what it is about.
CREATE TABLE alert (
  name TEXT NOT NULL,
  -- What the alert is about, if there may be several: a sweep, a node. Otherwise empty.
  subject TEXT NOT NULL,
  -- As it was told last, or as it was first seen.
  text TEXT NOT NULL,
  since INTEGER NOT NULL,
  -- Since when its condition no longer holds.
  clear_since INTEGER,
  -- What the operator knows: 'nothing', 'begun' or 'over'.
  told TEXT NOT NULL,
  told_at INTEGER,
  PRIMARY KEY (name, subject)
);

-- When messages about alerts were ordered, for an hour: there are not many in that time.
CREATE TABLE alert_message (
  id TEXT PRIMARY KEY,
  ordered_at INTEGER NOT NULL
);

-- Sweeps whose last pass failed, for all servers that share a database. On SQLite, the server remembers it itself.
CREATE TABLE sweep_failure (
  name TEXT PRIMARY KEY,
  since INTEGER NOT NULL,
  -- Passes that have failed since then.
  count INTEGER NOT NULL,
  error TEXT NOT NULL
);
