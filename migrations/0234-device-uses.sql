-- When the token of a device was last used, to the hour, and when a push was last delivered to one. NULL: not since this
-- was stored.
ALTER TABLE device ADD COLUMN used_at INTEGER;
ALTER TABLE push_registration ADD COLUMN pushed_at INTEGER;
