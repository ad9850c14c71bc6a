-- Ids sort by the time at which steps were added: for kinds that are performed in order, and to drop the oldest.
CREATE INDEX step_order ON step (kind, id);
