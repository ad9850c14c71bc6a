-- Programs that act for an account. A row without `did` waits for somebody to confirm it.
CREATE TABLE agent_registration (
  -- `reg_` and 32 hexadecimal digits.
  id TEXT PRIMARY KEY,
  did TEXT,
  -- anonymous, service_auth, identity_assertion or child.
  type TEXT NOT NULL,
  -- Of identity_assertion: the provider and its name for the agent. Of child: the DID of the child as subject.
  issuer TEXT,
  subject TEXT,
  -- Of a child: the account that made it.
  parent_did TEXT,
  email TEXT,
  -- JSON list of canonical scopes, sorted.
  scopes TEXT NOT NULL,
  -- When the newest assertion expires; NULL: none was made.
  assertion_expires_at INTEGER,
  -- Hex SHA-256 of the claim token's text.
  claim_token_hash TEXT UNIQUE,
  claim_token_expires_at INTEGER,
  confirmed_at INTEGER,
  -- active (waits for confirmation), claimed or revoked.
  status TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  UNIQUE (issuer, subject)
);
CREATE INDEX agent_registration_did ON agent_registration (did, created_at);
CREATE INDEX agent_registration_parent ON agent_registration (parent_did) WHERE parent_did IS NOT NULL;
CREATE INDEX agent_registration_waiting ON agent_registration (claim_token_expires_at) WHERE status = 'active';

-- Codes with which a person confirms a registration.
CREATE TABLE agent_claim (
  -- `cla_` and 32 hexadecimal digits.
  id TEXT PRIMARY KEY,
  registration_id TEXT NOT NULL,
  user_code TEXT NOT NULL,
  expires_at INTEGER NOT NULL,
  -- pending, completed or expired.
  status TEXT NOT NULL,
  email TEXT,
  created_at INTEGER NOT NULL
);
CREATE INDEX agent_claim_registration ON agent_claim (registration_id, created_at);
CREATE UNIQUE INDEX agent_claim_code ON agent_claim (user_code) WHERE status = 'pending';
CREATE INDEX agent_claim_expires ON agent_claim (expires_at) WHERE status = 'pending';

-- What agents did and what became of them. Rows are only added, and end with the account.
CREATE TABLE agent_event (
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL,
  registration_id TEXT NOT NULL,
  type TEXT NOT NULL,
  did TEXT,
  -- JSON object without anything secret; NULL: nothing to add.
  detail TEXT,
  created_at INTEGER NOT NULL
);
CREATE INDEX agent_event_registration ON agent_event (registration_id, seq);
