-- Authorization requests that clients have pushed and nobody has decided yet.
CREATE TABLE oauth_request (
  id_hash TEXT PRIMARY KEY,
  client_id TEXT NOT NULL,
  -- JSON: what is asked for, who asks, and what the answer is bound to.
  content TEXT NOT NULL,
  expires_at INTEGER NOT NULL
);
CREATE INDEX oauth_request_expires ON oauth_request (expires_at);

-- Authorization codes, each good for one exchange.
CREATE TABLE oauth_code (
  code_hash TEXT PRIMARY KEY,
  did TEXT NOT NULL,
  -- JSON: the request it answers, and what was granted.
  content TEXT NOT NULL,
  expires_at INTEGER NOT NULL
);
CREATE INDEX oauth_code_did ON oauth_code (did);
CREATE INDEX oauth_code_expires ON oauth_code (expires_at);

-- An app that an account lets in. Tokens are worth nothing without their row here.
CREATE TABLE oauth_session (
  id TEXT PRIMARY KEY,
  did TEXT NOT NULL,
  client_id TEXT NOT NULL,
  client_name TEXT,
  -- As granted; permission sets by name, unless scope_is_fixed.
  scope TEXT NOT NULL,
  scope_is_fixed INTEGER NOT NULL,
  jkt TEXT NOT NULL,
  -- JSON: the key with which a confidential client proves who it is; null for a public one.
  client_key TEXT,
  -- Of the code it began with: using that again ends the session.
  code_hash TEXT NOT NULL UNIQUE,
  -- Of the refresh token that counts, and of the one before; null for an app that may not refresh.
  refresh_hash TEXT,
  previous_refresh_hash TEXT,
  -- When the previous one was exchanged, and whether it was once more, by a client that missed the answer.
  rotated_at INTEGER,
  was_retried INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL,
  refreshed_at INTEGER NOT NULL,
  -- Whatever happens, it ends then; and earlier when it is not refreshed in time.
  expires_at INTEGER NOT NULL,
  idle_expires_at INTEGER NOT NULL
);
CREATE INDEX oauth_session_did ON oauth_session (did);
CREATE INDEX oauth_session_idle ON oauth_session (idle_expires_at);

-- What may be used once: assertions of clients, code challenges.
CREATE TABLE oauth_replay (
  kind TEXT NOT NULL,
  value TEXT NOT NULL,
  expires_at INTEGER NOT NULL,
  PRIMARY KEY (kind, value)
);
CREATE INDEX oauth_replay_expires ON oauth_replay (expires_at);

-- The last good document of a client.
CREATE TABLE oauth_client (
  client_id TEXT PRIMARY KEY,
  document TEXT NOT NULL,
  fetched_at INTEGER NOT NULL
);

-- A browser in which somebody has signed in.
CREATE TABLE oauth_device (
  token_hash TEXT PRIMARY KEY,
  expires_at INTEGER NOT NULL
);
CREATE INDEX oauth_device_expires ON oauth_device (expires_at);

CREATE TABLE oauth_device_account (
  token_hash TEXT NOT NULL,
  did TEXT NOT NULL,
  -- When the password was given last.
  signed_in_at INTEGER NOT NULL,
  PRIMARY KEY (token_hash, did)
);
CREATE INDEX oauth_device_account_did ON oauth_device_account (did);
