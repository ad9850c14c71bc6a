-- Accounts that act for another one within scopes: the holder invites, the delegate accepts, either ends it.
CREATE TABLE delegation (
  id TEXT PRIMARY KEY,
  -- The account that is shared.
  did TEXT NOT NULL,
  -- NULL once the account of the delegate is deleted.
  delegate_did TEXT,
  -- Values separated by spaces. They never change.
  scope TEXT NOT NULL,
  -- 'invited', 'active' or 'ended'.
  status TEXT NOT NULL,
  invited_at INTEGER NOT NULL,
  accepted_at INTEGER,
  -- NULL: without an end.
  expires_at INTEGER,
  ended_at INTEGER,
  -- Who ended it: 'holder', 'delegate', 'operator', 'password_reset', 'time' or 'deletion'.
  ended_by TEXT
);
CREATE INDEX delegation_did ON delegation (did, invited_at);
CREATE UNIQUE INDEX delegation_pair ON delegation (delegate_did, did) WHERE status <> 'ended';

-- What delegates did and what became of them. Rows are only added, and end with the shared account.
CREATE TABLE delegation_event (
  seq INTEGER PRIMARY KEY,
  delegation_id TEXT NOT NULL,
  did TEXT NOT NULL,
  type TEXT NOT NULL,
  -- JSON object without anything secret; NULL: nothing to add.
  detail TEXT,
  created_at INTEGER NOT NULL
);
CREATE INDEX delegation_event_did ON delegation_event (did, seq);
CREATE INDEX delegation_event_delegation ON delegation_event (delegation_id, seq);

-- Of a session of an app that a delegate signed in. A server of the previous version, which runs beside this one during
-- an upgrade, takes it for one of the holder: `scope` is what the delegate may do already, and a delegation that ends
-- deletes the row.
ALTER TABLE oauth_session ADD COLUMN delegation_id TEXT;
ALTER TABLE oauth_session ADD COLUMN delegate_did TEXT;
ALTER TABLE oauth_session ADD COLUMN delegation_scope TEXT;
CREATE INDEX oauth_session_delegate ON oauth_session (delegate_did) WHERE delegate_did IS NOT NULL;
