-- Until when a repository without a DID is being built. After that, or without it, the row is what is left of one that is gone.
ALTER TABLE repo ADD COLUMN staged_until INTEGER;
