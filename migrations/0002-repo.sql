-- Repositories. A row without a DID is one that is being built, or what is left of one that is gone.
CREATE TABLE repo (
  id INTEGER PRIMARY KEY,
  did TEXT UNIQUE,
  rev TEXT NOT NULL,
  head BLOB NOT NULL,
  -- Root of the tree.
  data BLOB NOT NULL,
  commit_block BLOB NOT NULL,
  -- The newest nodes of the tree, packed; the others lie in repo_node.
  fresh BLOB NOT NULL
);

-- Nodes of the tree that have lived for a while, by their CID.
CREATE TABLE repo_node (
  repo_id INTEGER NOT NULL,
  cid BLOB NOT NULL,
  rev TEXT NOT NULL,
  bytes BLOB NOT NULL,
  PRIMARY KEY (repo_id, cid)
) WITHOUT ROWID;

-- Records with their blocks. `path` is `collection/rkey`, so that rows lie in the order of the tree.
CREATE TABLE record (
  repo_id INTEGER NOT NULL,
  path TEXT NOT NULL,
  cid BLOB NOT NULL,
  rev TEXT NOT NULL,
  indexed_at INTEGER NOT NULL,
  takedown_ref TEXT,
  -- What a like, repost, follow or block is about.
  subject TEXT,
  value BLOB NOT NULL,
  PRIMARY KEY (repo_id, path)
) WITHOUT ROWID;

CREATE INDEX record_cid ON record (repo_id, cid);
CREATE INDEX record_rev ON record (repo_id, rev);
CREATE INDEX record_subject ON record (repo_id, subject) WHERE subject IS NOT NULL;
