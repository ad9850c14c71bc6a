-- Which of the servers that share a database took a step, or is at a claim on a handle: the others take over what a server
-- leaves behind. NULL on SQLite, which only one process uses.
ALTER TABLE step ADD COLUMN taken_by TEXT;
ALTER TABLE name_claim ADD COLUMN attempt_by TEXT;
