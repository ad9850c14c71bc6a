-- When a browser, or the session of a wallet, was last used, to the hour. NULL: not since this was stored.
ALTER TABLE oauth_device_account ADD COLUMN used_at INTEGER;
ALTER TABLE wallet_session ADD COLUMN used_at INTEGER;
