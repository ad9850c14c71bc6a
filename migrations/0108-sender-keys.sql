-- Keys with which the server seals push notifications. Rows are never deleted, so that no number is used twice.
CREATE TABLE push_sender_key (
  kid INTEGER PRIMARY KEY,
  -- The scalar under the master key; NULL once the key is revoked. The public key is derived from it.
  secret_wrapped TEXT,
  -- active (seals), retired (published, but seals no more) or revoked.
  state TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  -- When it got its state.
  changed_at INTEGER NOT NULL
);
CREATE UNIQUE INDEX push_sender_key_active ON push_sender_key (state) WHERE state = 'active';
