-- Devices that asked for pushes. Several may have one token: accounts on the same phone.
CREATE TABLE push_registration (
  -- The DID of an account, or `operators`.
  owner TEXT NOT NULL,
  device_id TEXT NOT NULL,
  -- A key of P-256 as a did:key, for which pushes are sealed.
  public_key TEXT NOT NULL,
  -- Under which Apple knows the app on the device.
  token TEXT NOT NULL,
  topic TEXT NOT NULL,
  -- 1: the device is woken without content.
  is_ping INTEGER NOT NULL,
  -- Under which the relay knows the token; NULL until it has said.
  handle TEXT,
  -- When another handle was last asked for, because the relay did not know the one that it had given.
  renewed_at INTEGER,
  registered_at INTEGER NOT NULL,
  PRIMARY KEY (owner, device_id)
);
CREATE INDEX push_registration_token ON push_registration (token);
CREATE INDEX push_registration_handle ON push_registration (handle);
