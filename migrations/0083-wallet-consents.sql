-- Authorization requests that wait for a decision in a wallet, or that were decided there. The client and the answer's
-- bindings stand in the pushed request; a consent whose pushed request is gone can no longer be decided.
CREATE TABLE wallet_consent (
  request_id TEXT PRIMARY KEY,
  -- `id_hash` of the pushed request.
  request_hash TEXT NOT NULL UNIQUE,
  user_code TEXT NOT NULL UNIQUE,
  client_id TEXT NOT NULL,
  -- Permission sets are expanded.
  requested_scope TEXT NOT NULL,
  -- A DID, or a handle in lower case.
  login_hint TEXT,
  -- Where the browser came from, as an origin of the web.
  web_origin TEXT,
  ip TEXT NOT NULL,
  -- The browser in words.
  opened_with TEXT,
  -- pending, approved, denied or completed. One that has lapsed remains pending.
  status TEXT NOT NULL,
  match_code TEXT,
  push_dispatched_at INTEGER,
  -- Who decided, and what was granted.
  account_did TEXT,
  granted_scope TEXT,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
);
CREATE INDEX wallet_consent_expires ON wallet_consent (expires_at);
CREATE INDEX wallet_consent_hint ON wallet_consent (login_hint);
CREATE INDEX wallet_consent_account ON wallet_consent (account_did);

-- What happened to such requests. Rows hold no code and no token: `request_hash` names the request.
CREATE TABLE wallet_consent_event (
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL,
  request_hash TEXT NOT NULL,
  action TEXT NOT NULL,
  -- NULL while nobody has decided.
  account_did TEXT,
  client_id TEXT NOT NULL,
  -- JSON.
  detail TEXT NOT NULL,
  created_at INTEGER NOT NULL
);
CREATE INDEX wallet_consent_event_request ON wallet_consent_event (request_hash);
CREATE INDEX wallet_consent_event_account ON wallet_consent_event (account_did, seq);
CREATE INDEX wallet_consent_event_created ON wallet_consent_event (created_at);
