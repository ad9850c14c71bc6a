-- Who asks, for the person who decides: the program and the network that asked for the code, as in the rows of sessions.
ALTER TABLE agent_claim ADD COLUMN opened_with TEXT;
ALTER TABLE agent_claim ADD COLUMN opened_from TEXT;
-- Finished codes are recognised for a day, and may repeat.
CREATE INDEX agent_claim_user_code ON agent_claim (user_code, created_at);
CREATE INDEX agent_claim_finished ON agent_claim (expires_at) WHERE status <> 'pending';
-- What is known of programs that belong to nobody (yet).
CREATE INDEX agent_event_unclaimed ON agent_event (created_at) WHERE did IS NULL;

-- What a person who entered a code is shown, until the person decides. The form has nothing but the id.
CREATE TABLE agent_claim_page (
  -- SHA-256 of the id.
  id_hash TEXT PRIMARY KEY,
  did TEXT NOT NULL,
  claim_id TEXT NOT NULL,
  -- JSON list of the scopes that were shown.
  scopes TEXT NOT NULL,
  expires_at INTEGER NOT NULL
);
CREATE INDEX agent_claim_page_did ON agent_claim_page (did);
CREATE INDEX agent_claim_page_expires ON agent_claim_page (expires_at);
