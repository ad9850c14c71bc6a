-- By how many milliseconds the clock of a node is ahead of the database's; NULL if it is a version that does not tell.
ALTER TABLE node ADD COLUMN clock_ahead INTEGER;
