-- Accounts of this server that operate it. One role each.
CREATE TABLE operator_role (
  did TEXT PRIMARY KEY,
  role TEXT NOT NULL,
  given_by TEXT NOT NULL,
  given_at INTEGER NOT NULL
);

-- Where those accounts are signed in as operators.
CREATE TABLE operator_session (
  token_hash TEXT PRIMARY KEY,
  -- Names the session to people, who must not see the hash.
  id TEXT NOT NULL UNIQUE,
  did TEXT NOT NULL,
  -- Hash of what the browser says of itself; NULL: the session was opened by a program.
  browser_hash TEXT,
  opened_at INTEGER NOT NULL,
  -- Within a minute.
  used_at INTEGER NOT NULL,
  -- When the password was last entered.
  proved_at INTEGER NOT NULL,
  opened_with TEXT,
  opened_from TEXT
);
CREATE INDEX operator_session_did ON operator_session (did);

-- Why the operator acted, in their words.
ALTER TABLE operator_audit ADD COLUMN reason TEXT;
