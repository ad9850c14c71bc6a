-- Where the password of an account was given before, so that its holder is told of a place that is new. The program in
-- words and the network, never the header or the address; empty where it is not known.
CREATE TABLE known_place (
  did TEXT NOT NULL,
  program TEXT NOT NULL,
  network TEXT NOT NULL,
  seen_at INTEGER NOT NULL,
  PRIMARY KEY (did, program, network)
);
