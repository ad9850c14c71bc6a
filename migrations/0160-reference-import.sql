-- Moves of a whole server of the reference into this one: by the DID of that server. A row without an end is a move that
-- was interrupted, and goes on when the command runs again.
CREATE TABLE reference_import (
  server_did TEXT PRIMARY KEY,
  begun_at INTEGER NOT NULL,
  -- The newest number of its event log, above which the log here continues.
  last_seq INTEGER NOT NULL,
  -- The first of its events that the log here takes over; NULL: it takes over none.
  events_from INTEGER,
  finished_at INTEGER
);

-- Accounts that are here already, until the move ends.
CREATE TABLE reference_import_account (
  did TEXT PRIMARY KEY,
  imported_at INTEGER NOT NULL
);

-- Hashes of passwords that another server made, until their owners sign in.
CREATE INDEX account_foreign_hash ON account (did) WHERE substr(password_hash, 1, 8) = '$scrypt$';
CREATE INDEX app_password_foreign_hash ON app_password (did) WHERE substr(password_hash, 1, 8) = '$scrypt$';

-- Which clients have sessions here: their documents may be fetched again, however long the app was away.
CREATE INDEX oauth_session_client ON oauth_session (client_id);
