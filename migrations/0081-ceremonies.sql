-- Accounts in the making. Their identities are made by wallets, in several steps, and become accounts in one. Handle and
-- address are kept in `name_reservation`, devices in `device`, both under the id.
CREATE TABLE ceremony (
  id TEXT PRIMARY KEY,
  handle TEXT NOT NULL,
  email TEXT NOT NULL,
  tier TEXT NOT NULL,
  invite_code TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  -- Hex SHA-256 of the token of the one session that may go on; NULL until a wallet begins.
  session_hash TEXT UNIQUE,
  session_expires_at INTEGER,
  -- The key that will sign the repository; NULL until the wallet asks for it.
  signing_key TEXT,
  signing_key_wrapped TEXT,
  -- The identity, stored before the directory learns of it, and when the directory is known to have it.
  did TEXT,
  registered_at INTEGER
);
CREATE INDEX ceremony_created_at ON ceremony (created_at, id);

-- The account in the making that the code is for: nobody else may use it.
ALTER TABLE invite_code ADD COLUMN bound_to TEXT;

-- Keys that operators had made. They belong to the server and to no account.
CREATE TABLE operator_key (
  seq INTEGER PRIMARY KEY,
  signing_key TEXT NOT NULL UNIQUE,
  wrapped TEXT NOT NULL,
  created_at INTEGER NOT NULL
);
