-- When the share of a release was first handed out, how many times since, and whether each request needs the code that
-- opened the release.
ALTER TABLE escrow_share ADD COLUMN collected_at INTEGER;
ALTER TABLE escrow_share ADD COLUMN collections INTEGER NOT NULL DEFAULT 0;
ALTER TABLE escrow_share ADD COLUMN needs_code INTEGER NOT NULL DEFAULT 0;
