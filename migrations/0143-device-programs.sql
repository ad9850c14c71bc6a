-- The wallet that registered a device, as its request told it.
ALTER TABLE device ADD COLUMN opened_with TEXT;
