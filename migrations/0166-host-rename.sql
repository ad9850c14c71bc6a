-- The renaming of this server that was begun last, in one row. `handles`: keep or rename those under the former name.
CREATE TABLE host_rename (
  id INTEGER PRIMARY KEY,
  public_url TEXT NOT NULL,
  handles TEXT NOT NULL,
  begun_at BIGINT NOT NULL,
  finished_at BIGINT
);
-- What has become of each account in it. `sent_at` is when an operation was last sent without an answer.
CREATE TABLE host_rename_account (
  did TEXT PRIMARY KEY,
  state TEXT NOT NULL,
  detail TEXT,
  handle_fault TEXT,
  sent_at BIGINT,
  settled_at BIGINT
);
