-- Hash of a secret of the browser that a consent signs in to pages of this server. NULL: an app asked for the consent.
ALTER TABLE wallet_consent ADD COLUMN browser_hash TEXT;
