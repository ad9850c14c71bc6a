-- What watched labelers say about hosted accounts, as of the last complete pass over each labeler.

CREATE TABLE account_flag (
  labeler TEXT NOT NULL,
  did TEXT NOT NULL,
  val TEXT NOT NULL,
  -- When the labeler said so.
  labelled_at INTEGER NOT NULL,
  expires_at INTEGER,
  PRIMARY KEY (labeler, did, val)
);

CREATE INDEX account_flag_did ON account_flag (did);
