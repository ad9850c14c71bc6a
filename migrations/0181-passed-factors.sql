-- The second factor of a sign-in in a browser: 'mailed', or 'held' by the holder; NULL if none was given.
ALTER TABLE oauth_device_account ADD COLUMN passed_factor TEXT;
-- Browsers in which an account is not asked for its factor again for some time.
CREATE TABLE trusted_browser (
  did TEXT NOT NULL,
  token_hash TEXT NOT NULL,
  trusted_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  opened_with TEXT,
  opened_from TEXT,
  PRIMARY KEY (did, token_hash)
);
