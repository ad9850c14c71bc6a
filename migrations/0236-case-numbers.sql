-- The number of a case is in mails and in the audit log. It is never that of another case, also once the newest case is
-- deleted with its account.
CREATE TABLE numbered_case (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  did TEXT NOT NULL,
  kind TEXT NOT NULL,
  item TEXT NOT NULL,
  state TEXT NOT NULL,
  opened_at INTEGER NOT NULL,
  changed_at INTEGER NOT NULL,
  deadline_at INTEGER NOT NULL,
  further_reports INTEGER NOT NULL
);
INSERT INTO numbered_case (seq, did, kind, item, state, opened_at, changed_at, deadline_at, further_reports)
SELECT seq, did, kind, item, state, opened_at, changed_at, deadline_at, further_reports FROM moderation_case;
DROP TABLE moderation_case;
ALTER TABLE numbered_case RENAME TO moderation_case;
CREATE UNIQUE INDEX moderation_case_open ON moderation_case (did, kind, item) WHERE state = 'open';
CREATE INDEX moderation_case_did ON moderation_case (did);
CREATE INDEX moderation_case_waiting ON moderation_case (state, deadline_at);
