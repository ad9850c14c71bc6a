-- Names for which an account caused the first order of a certificate, and when: each account may cause some in a week.
CREATE TABLE name_order (
  did TEXT NOT NULL,
  names TEXT NOT NULL,
  ordered_at INTEGER NOT NULL,
  PRIMARY KEY (did, names)
);
