-- What the DNS responder of this server publishes while certificates are being ordered: TXT records, by order.
CREATE TABLE challenge_record (
  -- Of the row of certificate_order.
  names TEXT NOT NULL,
  record_name TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (record_name, value)
);
