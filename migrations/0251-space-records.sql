-- Records of repositories in spaces. `path` is `collection/rkey`.
CREATE TABLE space_record (
  space_repo_id INTEGER NOT NULL,
  path TEXT NOT NULL,
  cid BLOB NOT NULL,
  rev TEXT NOT NULL,
  value BLOB NOT NULL,
  PRIMARY KEY (space_repo_id, path)
) WITHOUT ROWID;

-- What the latest writes changed, in order: apps that follow a repository ask for what is after a revision.
CREATE TABLE space_op (
  space_repo_id INTEGER NOT NULL,
  rev TEXT NOT NULL,
  -- Place within the revision, from 0.
  idx INTEGER NOT NULL,
  path TEXT NOT NULL,
  -- Null if the record was deleted.
  cid BLOB,
  -- Null if there was no record before.
  prev BLOB,
  PRIMARY KEY (space_repo_id, rev, idx)
) WITHOUT ROWID;

-- Blobs that records in spaces refer to. They stay, and do not become public.
CREATE TABLE space_blob_reference (
  did TEXT NOT NULL,
  cid TEXT NOT NULL,
  space TEXT NOT NULL,
  record TEXT NOT NULL,
  rev TEXT NOT NULL,
  PRIMARY KEY (did, cid, space, record)
) WITHOUT ROWID;
CREATE INDEX space_blob_reference_record ON space_blob_reference (did, space, record);
