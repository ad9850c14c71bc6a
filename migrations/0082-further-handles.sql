-- Handles of an account beside the one in its row, oldest first. None of them is the handle of another account.
CREATE TABLE further_handle (
  handle TEXT PRIMARY KEY,
  did TEXT NOT NULL,
  created_at INTEGER NOT NULL
);
CREATE INDEX further_handle_did ON further_handle (did, created_at);

-- Names that are kept for one owner: the id of an account in the making, or the DID of an account.
CREATE TABLE name_reservation (
  handle TEXT PRIMARY KEY,
  owner TEXT NOT NULL,
  -- Kept together with the handle.
  email TEXT UNIQUE,
  reserved_until INTEGER NOT NULL
);
CREATE INDEX name_reservation_owner ON name_reservation (owner);
CREATE INDEX name_reservation_until ON name_reservation (reserved_until);
