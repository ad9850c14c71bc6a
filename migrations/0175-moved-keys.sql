-- What the identity is to name is worked out when it is shown and when it is signed: from the directory, and from what is
-- known of its rotation keys and what the holder wants, as JSON.
ALTER TABLE move_in DROP COLUMN wanted;
ALTER TABLE move_in ADD COLUMN key_notes TEXT;
