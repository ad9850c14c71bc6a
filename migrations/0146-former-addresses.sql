-- Email addresses that accounts had before, by when they were first and last replaced. They too are told of a recovery.
CREATE TABLE former_address (
  did TEXT NOT NULL,
  address TEXT NOT NULL,
  first_replaced_at INTEGER NOT NULL,
  replaced_at INTEGER NOT NULL,
  PRIMARY KEY (did, address)
);
CREATE INDEX former_address_replaced_at ON former_address (replaced_at);
