-- When the clock was last looked at by what deletes by age: a start finds out whether it was set meanwhile. One row, of
-- NULL while nothing was stored yet.
CREATE TABLE clock_seen (
  seen_at INTEGER
);

INSERT INTO clock_seen (seen_at) VALUES ((SELECT sequenced_at FROM repo_seq ORDER BY seq DESC LIMIT 1));
