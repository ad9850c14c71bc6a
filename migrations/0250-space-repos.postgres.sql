-- Repositories in spaces, to which few people have access: one for each account and space. None of these tables is read
-- by anything public. A row without a DID is what is left of the repository of an account that is gone.
CREATE TABLE space_repo (
  id INTEGER PRIMARY KEY,
  did TEXT,
  -- URI of the space, with its parts.
  space TEXT NOT NULL,
  authority TEXT NOT NULL,
  type TEXT NOT NULL,
  rev TEXT NOT NULL,
  record_count INTEGER NOT NULL,
  -- The set hash before it is hashed: 2048 bytes.
  state BLOB NOT NULL
);
CREATE UNIQUE INDEX space_repo_space ON space_repo (did, space);

-- The state is random, and replaced by every write.
ALTER TABLE space_repo ALTER COLUMN state SET STORAGE PLAIN;
ALTER TABLE space_repo SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);
