-- Whether the browser was asked to keep the account signed in. NULL: signed in before this was stored, or by a server
-- that does not know it; `expires_at` of the browser says how long, then.
ALTER TABLE oauth_device_account ADD COLUMN remembered INTEGER;
