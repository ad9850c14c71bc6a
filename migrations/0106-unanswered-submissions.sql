-- When the operation of a staged key was last sent to the directory without an answer: it may still arrive. NULL: every
-- submission was answered.
ALTER TABLE staged_key ADD COLUMN unanswered_at INTEGER;
