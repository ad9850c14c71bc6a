-- A digest of what the old server had of the account when it came here; NULL: not known.
ALTER TABLE reference_import_account ADD COLUMN former_state TEXT;

-- When the browsers of the old server had come here; NULL: not yet.
ALTER TABLE reference_import ADD COLUMN browsers_at INTEGER;
