-- Sign-ins at other servers whose accounts may move here, until their holders have seen the plan and begin.
CREATE TABLE move_plan (
  token_hash TEXT PRIMARY KEY,
  did TEXT NOT NULL,
  host TEXT NOT NULL,
  session_wrapped TEXT NOT NULL,
  expires_at INTEGER NOT NULL
);
CREATE INDEX move_plan_did ON move_plan (did);

-- Accounts that move here, each with what its next stage needs.
CREATE TABLE move_in (
  did TEXT PRIMARY KEY,
  -- Origin of the old server; NULL: it is gone, and an archive takes its place.
  host TEXT,
  stage TEXT NOT NULL,
  -- The session at the old server; NULL: there is none, or it has ended.
  session_wrapped TEXT,
  -- A did:key of the holder, for the rotation keys.
  recovery_key TEXT,
  -- The state of the identity that was agreed, as JSON, and the signed operation that sets it.
  wanted TEXT,
  operation TEXT,
  -- When the operation was last sent without an answer.
  unanswered_at INTEGER,
  -- How often the present part was tried: the repository, or one blob.
  tries INTEGER NOT NULL DEFAULT 0,
  -- Missing blobs up to this CID were given up; and how many.
  blobs_after TEXT NOT NULL DEFAULT '',
  blobs_lost INTEGER NOT NULL DEFAULT 0,
  -- What went wrong last, in words, and what has to come from the holder before it goes on: 'sign-in' or 'decision'.
  fault TEXT,
  halted TEXT,
  began_at INTEGER NOT NULL,
  changed_at INTEGER NOT NULL
);
