-- Accounts that other accounts have made for agents, finished or not. A row outlives its account, as long as the parent
-- has one: its DID is not made once more, and the parent may ask for the deletion again.
CREATE TABLE child_account (
  did TEXT PRIMARY KEY,
  parent_did TEXT NOT NULL,
  -- Of the registration that is added when the account is finished.
  registration_id TEXT NOT NULL,
  -- The signed first operation of the identity, as JSON.
  genesis TEXT NOT NULL,
  -- When the directory was known to have the identity; NULL: it may have it or not.
  published_at INTEGER,
  -- When the account was finished.
  finished_at INTEGER,
  -- When it is to be deleted, or was, as last asked for. Its owner may have activated it since.
  delete_after INTEGER,
  created_at INTEGER NOT NULL
);
CREATE INDEX child_account_parent ON child_account (parent_did);
