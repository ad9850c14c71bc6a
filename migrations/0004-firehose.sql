-- The event log of the firehose. `event` is the CBOR body of the frame, complete with its seq and time.
CREATE TABLE repo_seq (
  seq INTEGER PRIMARY KEY,
  did TEXT NOT NULL,
  event_type TEXT NOT NULL,
  -- Before the body: what stands behind a long value is slow to reach.
  sequenced_at INTEGER NOT NULL,
  event BLOB NOT NULL
);

CREATE INDEX repo_seq_did ON repo_seq (did);

-- One row about what the log no longer holds. Numbers up to `spent_through` are never given again; retention has
-- removed rows up to `pruned_through`.
CREATE TABLE repo_seq_past (
  spent_through INTEGER NOT NULL,
  pruned_through INTEGER NOT NULL
);

INSERT INTO repo_seq_past (spent_through, pruned_through) VALUES (0, 0);
