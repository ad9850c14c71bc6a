-- Preferences of an account for the apps it uses: a JSON array, in the order it was put.
CREATE TABLE preference (
  did TEXT PRIMARY KEY,
  value TEXT NOT NULL
);
