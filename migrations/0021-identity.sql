-- DID documents as they were last fetched: for resolution, never for proofs.
CREATE TABLE did_document (
  did TEXT PRIMARY KEY,
  document TEXT NOT NULL,
  fetched_at INTEGER NOT NULL
);
CREATE INDEX did_document_by_age ON did_document (fetched_at);

-- Keys promised to accounts that are still to come, the secret under the master key.
CREATE TABLE reserved_signing_key (
  signing_key TEXT PRIMARY KEY,
  -- NULL: the client did not say for whom.
  did TEXT UNIQUE,
  wrapped TEXT NOT NULL,
  created_at INTEGER NOT NULL
);
CREATE INDEX reserved_signing_key_by_age ON reserved_signing_key (created_at);
