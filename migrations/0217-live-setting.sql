-- Values of the configuration that operators have replaced while the server runs, as in an environment variable.
CREATE TABLE live_setting (
  -- As in the file: `invite_code_required`.
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL
);
