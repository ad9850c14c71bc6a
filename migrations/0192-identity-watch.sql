-- Operations on identities that this server has signed or sent to the directory, for 30 days.
CREATE TABLE own_operation (
  did TEXT NOT NULL,
  cid TEXT NOT NULL,
  noted_at INTEGER NOT NULL,
  PRIMARY KEY (did, cid)
);
CREATE INDEX own_operation_noted ON own_operation (noted_at);

-- What the directory said of the identities of accounts when it was asked last.
CREATE TABLE watched_identity (
  did TEXT PRIMARY KEY,
  -- CID of the newest operation.
  head TEXT NOT NULL,
  -- How the identity does not fit the account: 'ended', 'server', 'signing-key' or 'handle'. NULL: it fits.
  misfit TEXT,
  -- The last change by operations that did not come from here, as JSON, and when the directory took the first of them.
  change TEXT,
  changed_at INTEGER
);
CREATE INDEX watched_identity_misfit ON watched_identity (misfit) WHERE misfit IS NOT NULL;
CREATE INDEX watched_identity_changed ON watched_identity (changed_at) WHERE changed_at IS NOT NULL;

-- The round in which all identities are looked at, in one row: how far it is, and how many accounts there were.
CREATE TABLE identity_round (
  id INTEGER PRIMARY KEY,
  began_at INTEGER NOT NULL,
  accounts INTEGER NOT NULL,
  -- The last account that was looked at, by `created_at` and `did`. NULL: none yet.
  after_created_at INTEGER,
  after_did TEXT,
  ended_at INTEGER
);
