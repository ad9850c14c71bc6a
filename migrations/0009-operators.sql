-- Devices that an operator has paired, and what was done with operator credentials.
CREATE TABLE operator_device (
  id TEXT PRIMARY KEY,
  label TEXT NOT NULL,
  public_key TEXT NOT NULL,
  platform TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  last_seen_at INTEGER,
  revoked_at INTEGER
);

CREATE TABLE operator_nonce (
  device_id TEXT NOT NULL,
  nonce TEXT NOT NULL,
  seen_at INTEGER NOT NULL,
  PRIMARY KEY (device_id, nonce)
);
CREATE INDEX operator_nonce_seen ON operator_nonce (seen_at);

CREATE TABLE operator_pairing_code (
  code_hash TEXT PRIMARY KEY,
  expires_at INTEGER NOT NULL,
  used_at INTEGER
);

CREATE TABLE operator_audit (
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL,
  actor TEXT NOT NULL,
  action TEXT NOT NULL,
  subject TEXT,
  outcome TEXT NOT NULL,
  detail TEXT,
  created_at INTEGER NOT NULL
);
CREATE INDEX operator_audit_subject ON operator_audit (subject, seq);

CREATE TABLE waitlist_entry (
  seq INTEGER PRIMARY KEY,
  email TEXT NOT NULL UNIQUE,
  handle TEXT,
  created_at INTEGER NOT NULL
);
