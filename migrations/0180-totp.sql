-- The authenticator app of an account.
CREATE TABLE totp_factor (
  did TEXT PRIMARY KEY,
  secret_wrapped TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  -- NULL: set up, but no code of it has been entered yet, so no sign-in asks for one.
  confirmed_at INTEGER,
  last_used_at INTEGER,
  -- The newest time step of 30 seconds whose code was accepted: no code is accepted twice.
  last_step INTEGER NOT NULL
);
-- Codes for holders who have lost their factors. A used one is deleted.
CREATE TABLE factor_recovery_code (
  did TEXT NOT NULL,
  code_hash TEXT NOT NULL,
  PRIMARY KEY (did, code_hash)
);
-- Wrong codes of an account since the last right one, within a window that ends at `until`.
CREATE TABLE factor_failure (
  did TEXT PRIMARY KEY,
  failures INTEGER NOT NULL,
  until INTEGER NOT NULL
);
