-- The log keeps events as they are sent: the body behind the header that names its type.
ALTER TABLE repo_seq RENAME COLUMN event TO frame;

-- A fault ends the whole migration anyway; with ABORT SQLite would keep every page as it was, in memory.
UPDATE OR ROLLBACK repo_seq SET frame = CAST(CASE event_type
  WHEN 'commit' THEN X'a261746723636f6d6d6974626f7001'
  WHEN 'sync' THEN X'a26174652373796e63626f7001'
  WHEN 'identity' THEN X'a2617469236964656e74697479626f7001'
  WHEN 'account' THEN X'a2617468236163636f756e74626f7001'
END || frame AS BLOB);
