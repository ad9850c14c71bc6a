-- Accounts of which it is known that a wallet holds a key of theirs: they were made with one, or have proved it since.
CREATE TABLE known_wallet (
  did TEXT PRIMARY KEY,
  known_since INTEGER NOT NULL
);
INSERT INTO known_wallet (did, known_since)
SELECT did, created_at FROM account
WHERE (password_hash IS NULL AND did NOT IN (SELECT did FROM child_account))
  OR did IN (SELECT did FROM escrow_share)
  OR did IN (SELECT did FROM wallet_session WHERE by_password = 0)
  OR did IN (SELECT account_did FROM wallet_consent_event WHERE account_did IS NOT NULL);
