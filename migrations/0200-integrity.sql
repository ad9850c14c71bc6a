-- What is wrong with repositories, as the running check found it. A row goes once the repository is found to be right.
CREATE TABLE integrity_finding (
  did TEXT NOT NULL,
  fault TEXT NOT NULL,
  found_at INTEGER NOT NULL,
  seen_at INTEGER NOT NULL,
  PRIMARY KEY (did, fault)
);

-- The round in which all repositories are checked, in one row, and how far the check of new commits is.
CREATE TABLE integrity_round (
  id INTEGER PRIMARY KEY,
  began_at INTEGER NOT NULL,
  -- The last repository that was checked. Empty: none yet.
  after_did TEXT NOT NULL,
  repos INTEGER NOT NULL,
  ended_at INTEGER,
  -- When the last round that was completed ended, and how many repositories it had.
  completed_at INTEGER,
  completed_repos INTEGER,
  -- The number of the last event whose repository was checked.
  seq INTEGER NOT NULL
);
