-- Who lives here, and what lets them in. Handles and addresses are lower-case.

CREATE TABLE account (
  did TEXT PRIMARY KEY,
  handle TEXT UNIQUE,
  email TEXT UNIQUE,
  email_confirmed_at INTEGER,
  -- argon2id as a PHC string; NULL: the account has no password.
  password_hash TEXT,
  -- The key that signs the repository: as a did:key, and its secret under the master key.
  signing_key TEXT NOT NULL,
  signing_key_wrapped TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  deactivated_at INTEGER,
  delete_after INTEGER,
  takedown_ref TEXT,
  invites_disabled INTEGER NOT NULL DEFAULT 0
);

CREATE INDEX account_created_at ON account (created_at, did);
CREATE INDEX account_delete_after ON account (delete_after) WHERE delete_after IS NOT NULL;

-- One row for a session, however often its refresh token is exchanged.
CREATE TABLE session (
  id TEXT PRIMARY KEY,
  did TEXT NOT NULL,
  -- Name of the app password that opened it; NULL: opened with the reach of the account itself.
  app_password TEXT,
  current_token TEXT NOT NULL,
  previous_token TEXT,
  rotated_at INTEGER,
  expires_at INTEGER NOT NULL
);

CREATE INDEX session_did ON session (did);
CREATE INDEX session_expires_at ON session (expires_at);

CREATE TABLE app_password (
  did TEXT NOT NULL,
  name TEXT NOT NULL,
  -- argon2id under a salt of the account, so that one computation finds the row.
  password_hash TEXT NOT NULL,
  privileged INTEGER NOT NULL,
  personal_details INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (did, name)
);
