-- What servers that share a database remember together for a while. On SQLite, the server remembers it itself, and these
-- tables stay empty. On PostgreSQL they are not logged: they cost no flush, and are empty after a crash of PostgreSQL.
CREATE UNLOGGED TABLE used_proof (
  -- The first 16 bytes of SHA-256 of the key and the id of a DPoP proof.
  digest BLOB PRIMARY KEY,
  used_at INTEGER NOT NULL
);

CREATE UNLOGGED TABLE limit_window (
  -- Hash of the limit, the length of the window and whom it limits.
  id TEXT PRIMARY KEY,
  ends_at INTEGER NOT NULL,
  used INTEGER NOT NULL
);

-- Attempts to sign in that are under way, or have failed lately.
CREATE UNLOGGED TABLE sign_in_attempt (
  id TEXT PRIMARY KEY,
  -- SHA-256 of what was typed as the name of the account.
  name_hash TEXT NOT NULL,
  has_failed INTEGER NOT NULL,
  -- Counts until then.
  until INTEGER NOT NULL
);
CREATE INDEX sign_in_attempt_name ON sign_in_attempt (name_hash);
