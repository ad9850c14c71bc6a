-- Codes sent by mail, one of each purpose for an account. `code_hash` is the hex SHA-256 of the code.
CREATE TABLE mailed_code (
  did TEXT NOT NULL,
  purpose TEXT NOT NULL,
  code_hash TEXT NOT NULL,
  requested_at INTEGER NOT NULL,
  failures INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (did, purpose)
);

CREATE INDEX mailed_code_code_hash ON mailed_code (code_hash);
