-- A claim code is an invite code for one, with an end; the same inventory serves both.
ALTER TABLE invite_code ADD COLUMN expires_at INTEGER;
ALTER TABLE invite_code ADD COLUMN revoked_at INTEGER;
