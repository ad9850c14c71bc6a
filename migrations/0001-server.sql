-- Secrets of the server itself, wrapped by the master key: the session token key, the directory rotation key, ...
CREATE TABLE server_secret (
  name TEXT PRIMARY KEY,
  wrapped TEXT NOT NULL
);
