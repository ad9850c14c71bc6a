-- How often a record of the repository was taken down or given back: with the revision it says what its readers are shown.
ALTER TABLE repo ADD COLUMN takedowns INTEGER NOT NULL DEFAULT 0;
