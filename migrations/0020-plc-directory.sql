-- The log of the PLC directory that a development server runs in itself. `operation` is its JSON.
CREATE TABLE plc_operation (
  seq INTEGER PRIMARY KEY,
  did TEXT NOT NULL,
  cid TEXT NOT NULL,
  operation TEXT NOT NULL,
  nullified INTEGER NOT NULL,
  created_at INTEGER NOT NULL
);
CREATE INDEX plc_operation_by_did ON plc_operation (did, seq);
