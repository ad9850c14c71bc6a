-- What a finding of the running check is about: the repository of an account (repo), or its events (log).
ALTER TABLE integrity_finding ADD COLUMN part TEXT NOT NULL DEFAULT 'repo';

-- The number of the last event that was checked in the round.
ALTER TABLE integrity_round ADD COLUMN log_seq INTEGER NOT NULL DEFAULT 0;

-- Blobs whose bytes are missing or damaged, and bytes that no row has, as the last scrub found them.
CREATE TABLE blob_fault (
  cid TEXT PRIMARY KEY,
  -- missing, damaged or unowned
  fault TEXT NOT NULL,
  found_at INTEGER NOT NULL
);
