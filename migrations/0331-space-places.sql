-- Where each repository in a space belongs, a second time: without its row, nobody would know whose its records are.
-- Numbers of repositories come from here. A row without a DID is what is left of the repository of an account that is
-- gone.
CREATE TABLE space_place (
  id INTEGER PRIMARY KEY,
  did TEXT,
  space TEXT NOT NULL
);
CREATE UNIQUE INDEX space_place_space ON space_place (did, space);
INSERT INTO space_place (id, did, space) SELECT id, did, space FROM space_repo;

-- The revision before the one of the change, in the first change of a revision; empty if there was none.
ALTER TABLE space_op ADD COLUMN prev_rev TEXT;
