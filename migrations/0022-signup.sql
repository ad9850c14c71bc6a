-- Sign-ups under way: the names they hold until the account is there. A row that stays behind is one that was cut off.
CREATE TABLE signup (
  did TEXT PRIMARY KEY,
  handle TEXT NOT NULL UNIQUE,
  email TEXT UNIQUE,
  invite_code TEXT,
  -- The signed first operation, as JSON, which the directory may have; NULL for a DID that was brought along.
  genesis TEXT,
  reserved_at INTEGER NOT NULL
);

CREATE TABLE invite_code (
  code TEXT PRIMARY KEY,
  available_uses INTEGER NOT NULL,
  disabled INTEGER NOT NULL DEFAULT 0,
  -- A DID, or `admin`.
  for_account TEXT NOT NULL,
  created_by TEXT NOT NULL,
  created_at INTEGER NOT NULL
);

CREATE INDEX invite_code_for_account ON invite_code (for_account);

CREATE TABLE invite_use (
  code TEXT NOT NULL,
  used_by TEXT NOT NULL,
  used_at INTEGER NOT NULL,
  PRIMARY KEY (code, used_by)
);

CREATE INDEX invite_use_used_by ON invite_use (used_by);
