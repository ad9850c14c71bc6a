-- Certificates that a certificate authority gave to this server, by the names that they are for, with spaces between.
CREATE TABLE certificate (
  names TEXT PRIMARY KEY,
  -- JSON with chain and key, both in PEM.
  wrapped TEXT NOT NULL,
  issued_at INTEGER NOT NULL,
  not_after INTEGER NOT NULL,
  renew_at INTEGER NOT NULL,
  -- When the authority is asked again when to renew it.
  ask_at INTEGER NOT NULL
);

-- Certificates that the server is getting, or will try to get again.
CREATE TABLE certificate_order (
  names TEXT PRIMARY KEY,
  -- The key of the certificate to come, in DER (PKCS #8).
  key_wrapped TEXT NOT NULL,
  -- The order at the authority; NULL: not placed, or failed.
  url TEXT,
  placed_at INTEGER,
  next_at INTEGER NOT NULL,
  failures INTEGER NOT NULL DEFAULT 0,
  fault TEXT,
  -- 1: the authority limits orders, and no order is placed before next_at.
  limited INTEGER NOT NULL DEFAULT 0
);
