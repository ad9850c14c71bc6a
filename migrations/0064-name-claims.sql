-- Handles on their way to an account: of a sign-up, or of an account that takes another one. Claimed here before the
-- directory learns of them, so that races are decided before anything is told to others.
CREATE TABLE name_claim (
  handle TEXT PRIMARY KEY,
  -- Who is to have it.
  did TEXT NOT NULL,
  -- Of a sign-up: the signed first operation of its identity, as JSON, which the directory may have, and the key that
  -- it names. Whoever signs up with the handle next goes on with them. NULL: the identity is there already.
  genesis TEXT,
  signing_key TEXT,
  signing_key_wrapped TEXT,
  -- The attempt that is under way; NULL when it ended, or was cut off, without an account.
  attempt TEXT,
  -- Until when nobody else may have the handle, whatever became of the attempt.
  held_until INTEGER NOT NULL,
  -- Held together with the handle while the attempt of a sign-up is under way.
  email TEXT UNIQUE,
  invite_code TEXT
);

CREATE INDEX name_claim_held_until ON name_claim (held_until);
CREATE INDEX name_claim_invite_code ON name_claim (invite_code) WHERE invite_code IS NOT NULL;

-- The keys of these were not kept: their identities are ended.
INSERT INTO name_claim (handle, did, genesis, held_until)
SELECT handle, did, genesis, reserved_at FROM signup WHERE genesis IS NOT NULL;

DROP TABLE signup;
