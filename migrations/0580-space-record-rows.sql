-- Records of repositories in spaces by row ids. Without them, a key stands beside its value, which SQLite then reads as
-- a whole for each key that it compares: a list of thousand names read a gigabyte.
CREATE TABLE space_record_row (
  space_repo_id INTEGER NOT NULL,
  path TEXT NOT NULL,
  cid BLOB NOT NULL,
  rev TEXT NOT NULL,
  value BLOB NOT NULL,
  PRIMARY KEY (space_repo_id, path)
);
INSERT INTO space_record_row (space_repo_id, path, cid, rev, value)
SELECT space_repo_id, path, cid, rev, value FROM space_record ORDER BY space_repo_id, path;
DROP TABLE space_record;
ALTER TABLE space_record_row RENAME TO space_record;
