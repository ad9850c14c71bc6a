-- Transfers of accounts to other devices.
CREATE TABLE transfer (
  id TEXT PRIMARY KEY,
  did TEXT NOT NULL,
  -- What the other device shows to accept it. NULL: the transfer has ended.
  code TEXT UNIQUE,
  -- pending, accepted, complete, expired or cancelled.
  status TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  -- When the code expires.
  expires_at INTEGER NOT NULL,
  -- When a device accepted it, and which one.
  accepted_at INTEGER,
  device_id TEXT,
  ended_at INTEGER
);

-- An account has one transfer at a time.
CREATE UNIQUE INDEX transfer_running ON transfer (did) WHERE code IS NOT NULL;
CREATE INDEX transfer_did ON transfer (did);
CREATE INDEX transfer_created_at ON transfer (created_at, id) WHERE code IS NOT NULL;
CREATE INDEX transfer_ended_at ON transfer (ended_at);
