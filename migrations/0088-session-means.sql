-- 1: a password opened the session, so a change of the password ends it; as in `wallet_session`.
ALTER TABLE session ADD COLUMN by_password INTEGER NOT NULL DEFAULT 1;
