-- With what and from where somebody signed in, so that the account holder can tell sessions apart. Unknown for older ones.
-- The program in words, never the header; the network, never the address.
ALTER TABLE session ADD COLUMN opened_at INTEGER;
ALTER TABLE session ADD COLUMN opened_with TEXT;
ALTER TABLE session ADD COLUMN opened_from TEXT;

ALTER TABLE oauth_device_account ADD COLUMN opened_at INTEGER;
ALTER TABLE oauth_device_account ADD COLUMN opened_with TEXT;
ALTER TABLE oauth_device_account ADD COLUMN opened_from TEXT;

-- The browser in which the account holder let the app in.
ALTER TABLE oauth_session ADD COLUMN opened_with TEXT;
ALTER TABLE oauth_session ADD COLUMN opened_from TEXT;
