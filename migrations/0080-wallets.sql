-- Sessions of wallets: opaque tokens for the routes of account owners. `token_hash` is the hex SHA-256 of the token.
CREATE TABLE wallet_session (
  token_hash TEXT PRIMARY KEY,
  did TEXT NOT NULL,
  -- 1: a password opened it, so a change of the password ends it.
  by_password INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  opened_at INTEGER NOT NULL,
  opened_with TEXT,
  opened_from TEXT
);
CREATE INDEX wallet_session_did ON wallet_session (did);
CREATE INDEX wallet_session_expires_at ON wallet_session (expires_at);

-- Nonces of accepted proofs. A row outlives the time for which its proof would be accepted again.
CREATE TABLE proof_nonce (
  did TEXT NOT NULL,
  nonce TEXT NOT NULL,
  used_at INTEGER NOT NULL,
  PRIMARY KEY (did, nonce)
);
CREATE INDEX proof_nonce_used_at ON proof_nonce (used_at);

-- Devices that hold a device token: of an account in the making (`owner` is its id), or of a transfer (`owner` is its DID).
CREATE TABLE device (
  id TEXT PRIMARY KEY,
  owner TEXT NOT NULL,
  token_hash TEXT NOT NULL UNIQUE,
  public_key TEXT NOT NULL,
  platform TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  revoked_at INTEGER
);
CREATE INDEX device_owner ON device (owner);

-- Documents of did:web accounts, as their owners publish them or want them served here.
CREATE TABLE web_document (
  did TEXT PRIMARY KEY,
  document TEXT NOT NULL,
  -- Since when this server serves the document; NULL: it does not.
  hosted_since INTEGER
);
