-- Share 2 of the recovery seeds of accounts: the 42 bytes of its envelope, under the master key.
CREATE TABLE escrow_share (
  did TEXT PRIMARY KEY,
  share_wrapped TEXT NOT NULL,
  held_since INTEGER NOT NULL,
  -- The release in flight: when it was opened, from when the share may be collected, and the hash of the code that opened it.
  -- All NULL if there is none.
  requested_at INTEGER,
  collectable_at INTEGER,
  opened_by TEXT
);
CREATE INDEX escrow_share_requested_at ON escrow_share (requested_at) WHERE requested_at IS NOT NULL;

-- What was done with shares. Rows are only added; they end with the account.
CREATE TABLE escrow_audit (
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL,
  did TEXT NOT NULL,
  event TEXT NOT NULL,
  -- JSON
  detail TEXT,
  created_at INTEGER NOT NULL
);
CREATE INDEX escrow_audit_did ON escrow_audit (did, seq);

-- Codes by mail that open a release. An account may have several. `code_hash` is the hex SHA-256 of the code's bytes.
CREATE TABLE recovery_code (
  code_hash TEXT PRIMARY KEY,
  did TEXT NOT NULL,
  issued_at INTEGER NOT NULL
);
CREATE INDEX recovery_code_did ON recovery_code (did, issued_at);
CREATE INDEX recovery_code_issued_at ON recovery_code (issued_at);
