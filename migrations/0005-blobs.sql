-- Uploaded bytes an account owns. The file belongs to the CID: it exists as long as one account has a row.
CREATE TABLE blob (
  did TEXT NOT NULL,
  cid TEXT NOT NULL,
  mime_type TEXT NOT NULL,
  size INTEGER NOT NULL,
  uploaded_at INTEGER NOT NULL,
  -- Since when no record of the account refers to it: the grace clock. NULL while one does.
  unreferenced_at INTEGER,
  takedown_ref TEXT,
  PRIMARY KEY (did, cid)
);
CREATE INDEX blob_by_cid ON blob (cid, size);
CREATE INDEX blob_usage ON blob (did, size);
CREATE INDEX blob_unreferenced ON blob (unreferenced_at, did, cid) WHERE unreferenced_at IS NOT NULL;

-- Which record points at which blob, whether or not its bytes are here. `record` is `collection/rkey`, `rev` the
-- commit that wrote it. Written in the commit's own transaction.
CREATE TABLE blob_reference (
  did TEXT NOT NULL,
  cid TEXT NOT NULL,
  record TEXT NOT NULL,
  rev TEXT NOT NULL,
  PRIMARY KEY (did, cid, record)
);
CREATE INDEX blob_reference_by_record ON blob_reference (did, record);

-- Files whose last owner went, until they are gone from the disk too: what a crash in between left behind is taken up again.
CREATE TABLE blob_removal (
  cid TEXT PRIMARY KEY
);

-- The revision at which the references of an account were last compared with its records.
CREATE TABLE blob_reconciled (
  did TEXT PRIMARY KEY,
  rev TEXT NOT NULL
);
