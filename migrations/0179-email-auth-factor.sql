-- Whether a sign-in with the password also needs a code mailed to the address. It does once the address is confirmed.
ALTER TABLE account ADD COLUMN email_auth_factor INTEGER NOT NULL DEFAULT 0;
-- Sign-ins on pages whose password was right, and which wait for a second factor.
CREATE TABLE pending_sign_in (
  token_hash TEXT PRIMARY KEY,
  did TEXT NOT NULL,
  -- Hash of a secret that only the browser has.
  browser_hash TEXT NOT NULL,
  expires_at INTEGER NOT NULL
);
CREATE INDEX pending_sign_in_did ON pending_sign_in (did);
CREATE INDEX pending_sign_in_expires_at ON pending_sign_in (expires_at);
