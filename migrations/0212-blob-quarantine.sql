-- Blobs that only moderators can read, until a time. The takedown reference of such a blob is 'quarantine'.
CREATE TABLE blob_quarantine (
  did TEXT NOT NULL,
  cid TEXT NOT NULL,
  placed_at INTEGER NOT NULL,
  ends_at INTEGER NOT NULL,
  -- The takedown reference of the blob from then on. NULL: others can read it again.
  then_ref TEXT,
  PRIMARY KEY (did, cid)
);
CREATE INDEX blob_quarantine_end ON blob_quarantine (ends_at);
