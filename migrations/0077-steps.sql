-- What a transaction has started and the world must finish: a mail, a request to be crawled. One of a kind for each key.
CREATE TABLE step (
  -- Another one for each step that is added: whoever does it is handed this to tell a repetition by.
  id TEXT PRIMARY KEY,
  kind TEXT NOT NULL,
  key TEXT NOT NULL,
  -- The account that it is about, and ends with.
  did TEXT,
  -- JSON, under the master key.
  payload_wrapped TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  -- When it is tried next; NULL when it has failed for good.
  due_at INTEGER,
  -- Until when somebody is at it, and nobody else.
  taken_until INTEGER,
  tries INTEGER NOT NULL,
  tried_at INTEGER,
  last_error TEXT,
  UNIQUE (kind, key)
);

CREATE INDEX step_next ON step (kind, tries, due_at);
CREATE INDEX step_created ON step (kind, created_at);
CREATE INDEX step_did ON step (did);
