-- Accounts whose holders want an archive made regularly: weekly or monthly.
CREATE TABLE archive_schedule (
  did TEXT PRIMARY KEY,
  every TEXT NOT NULL,
  due_at BIGINT NOT NULL
);
CREATE INDEX archive_schedule_due ON archive_schedule (due_at);
