-- Shares of a queue take turns, so that none fills it for the others. What an earlier version adds is in one without a name.
ALTER TABLE step ADD COLUMN share TEXT NOT NULL DEFAULT '';
ALTER TABLE step ADD COLUMN turn INTEGER NOT NULL DEFAULT 0;
CREATE INDEX step_turns ON step (kind, turn, id) WHERE due_at IS NOT NULL;
CREATE INDEX step_shares ON step (kind, share, turn);
