-- App passwords that may do only what their scopes name, until their end. They have a table of their own because a
-- server of the previous version, which runs beside this one during an upgrade, would take a row of `app_password` for
-- one without scopes. That server does not know these, and ends sessions that they have opened.
CREATE TABLE scoped_app_password (
  did TEXT NOT NULL,
  name TEXT NOT NULL,
  password_hash TEXT NOT NULL,
  -- Values separated by spaces.
  scope TEXT NOT NULL,
  -- NULL: without an end.
  expires_at INTEGER,
  created_at INTEGER NOT NULL,
  last_used_at INTEGER,
  PRIMARY KEY (did, name)
);

ALTER TABLE app_password ADD COLUMN last_used_at INTEGER;
