-- What happened to accounts that their holders should know of, for 90 days.
CREATE TABLE account_event (
  did TEXT NOT NULL,
  id TEXT NOT NULL,
  -- For several sign-ins of one kind on one day, the last.
  at INTEGER NOT NULL,
  event TEXT NOT NULL,
  -- With what the holder signed in; NULL for other events.
  means TEXT,
  -- Program and network of the request. NULL: unknown, or the server acted by itself.
  program TEXT,
  network TEXT,
  by_operator INTEGER NOT NULL,
  -- A handle, the name of an app password or of a program, or the client ID of an app.
  subject TEXT,
  times INTEGER NOT NULL,
  PRIMARY KEY (did, id)
);
CREATE INDEX account_event_newest ON account_event (did, at, id);
CREATE INDEX account_event_at ON account_event (at);
