-- Passkeys: keys that a device of the holder keeps, with which an account signs in.
CREATE TABLE passkey (
  -- In base64url. No two accounts have the same.
  credential_id TEXT PRIMARY KEY,
  did TEXT NOT NULL,
  -- The host that the key is bound to.
  rp_id TEXT NOT NULL,
  -- In COSE, in base64url.
  public_key TEXT NOT NULL,
  -- The newest count of signatures that the device has told; 0 if it counts none.
  sign_count INTEGER NOT NULL,
  -- How browsers reach the device, separated by spaces.
  transports TEXT NOT NULL,
  -- Whether the device may copy the key to others of its holder.
  is_synced INTEGER NOT NULL,
  name TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  last_used_at INTEGER
);
CREATE INDEX passkey_did ON passkey (did);
-- Challenges that were answered, until they expire.
CREATE TABLE used_passkey_challenge (
  challenge TEXT PRIMARY KEY,
  expires_at INTEGER NOT NULL
);
CREATE INDEX used_passkey_challenge_expires_at ON used_passkey_challenge (expires_at);
