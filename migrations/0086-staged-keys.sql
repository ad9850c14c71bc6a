-- Keys that are to replace the signing key of an account, at most one for each.
CREATE TABLE staged_key (
  did TEXT PRIMARY KEY,
  -- As a did:key, and its secret under the master key.
  signing_key TEXT NOT NULL,
  wrapped TEXT NOT NULL,
  staged_at INTEGER NOT NULL,
  -- The signed operation that publishes the key, as JSON, from when the directory may have it until it is known whether
  -- it took effect. NULL: none was submitted.
  operation TEXT
);

-- Since when the directory may name another key: the account signs no commits. NULL: it may sign. A commit reads this
-- with the key.
ALTER TABLE account ADD COLUMN signing_held_at INTEGER;
