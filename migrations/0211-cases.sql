-- What moderators have to decide on. A subject has at most one case that is open.
CREATE TABLE moderation_case (
  seq INTEGER PRIMARY KEY,
  -- The account that the case is about, or that has the record or blob.
  did TEXT NOT NULL,
  -- 'account', 'record' or 'blob'.
  kind TEXT NOT NULL,
  -- `collection/rkey` of the record, or the CID of the blob. Empty for an account.
  item TEXT NOT NULL,
  -- 'open', 'decided', 'appealed' or 'closed'.
  state TEXT NOT NULL,
  opened_at INTEGER NOT NULL,
  changed_at INTEGER NOT NULL,
  deadline_at INTEGER NOT NULL,
  -- Reports that were counted, and not stored, because the case has many.
  further_reports INTEGER NOT NULL
);
CREATE UNIQUE INDEX moderation_case_open ON moderation_case (did, kind, item) WHERE state = 'open';
CREATE INDEX moderation_case_did ON moderation_case (did);
CREATE INDEX moderation_case_waiting ON moderation_case (state, deadline_at);

-- Why a case was opened: what people, labelers and other services said.
CREATE TABLE case_report (
  seq INTEGER PRIMARY KEY,
  case_seq INTEGER NOT NULL,
  did TEXT NOT NULL,
  -- 'report', 'label', 'notice', 'check' or 'operator'.
  source TEXT NOT NULL,
  -- Who said it: a DID, or an operator as the audit log names it. Empty once the account was deleted.
  reported_by TEXT NOT NULL,
  -- Type of the report, value of the label.
  reason TEXT NOT NULL,
  text TEXT NOT NULL,
  reported_at INTEGER NOT NULL
);
CREATE INDEX case_report_case ON case_report (case_seq, source, reported_by, reason);
CREATE INDEX case_report_did ON case_report (did);
CREATE INDEX case_report_by ON case_report (reported_by, reported_at);

CREATE TABLE case_note (
  seq INTEGER PRIMARY KEY,
  case_seq INTEGER NOT NULL,
  did TEXT NOT NULL,
  actor TEXT NOT NULL,
  text TEXT NOT NULL,
  written_at INTEGER NOT NULL
);
CREATE INDEX case_note_case ON case_note (case_seq);
CREATE INDEX case_note_did ON case_note (did);

-- One for each case that was decided.
CREATE TABLE case_decision (
  case_seq INTEGER PRIMARY KEY,
  did TEXT NOT NULL,
  act TEXT NOT NULL,
  -- What the person was told.
  reason TEXT NOT NULL,
  decided_by TEXT NOT NULL,
  decided_at INTEGER NOT NULL,
  -- Whether a mail was ordered.
  mailed INTEGER NOT NULL,
  -- Hash of the code that leads the person to the decision. NULL: it takes nothing from the person.
  code_hash TEXT UNIQUE,
  -- When the quarantine of a blob ends.
  act_until INTEGER,
  appeal TEXT,
  appealed_at INTEGER,
  -- 'upheld' or 'reversed'.
  outcome TEXT,
  answer TEXT,
  answered_by TEXT,
  answered_at INTEGER
);
CREATE INDEX case_decision_did ON case_decision (did);
