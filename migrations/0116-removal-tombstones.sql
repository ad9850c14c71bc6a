-- In a storage that several servers share, the removal of a blob passes through states: waiting since `unowned_at`, taken
-- by the server that removes the object (`taker` names this removal), and removed. Rows without an instant have waited
-- long enough.
ALTER TABLE blob_removal ADD COLUMN unowned_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE blob_removal ADD COLUMN taken_at INTEGER;
ALTER TABLE blob_removal ADD COLUMN taker TEXT;
ALTER TABLE blob_removal ADD COLUMN removed_at INTEGER;
