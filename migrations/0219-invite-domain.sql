-- The domain under which the handle of the account must be; null for any. It is one that the server offers.
ALTER TABLE invite_code ADD COLUMN handle_domain TEXT;
