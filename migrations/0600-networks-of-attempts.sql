-- Tells whether failed attempts to sign in came from the network of the caller, or from others.
ALTER TABLE sign_in_attempt ADD COLUMN network TEXT NOT NULL DEFAULT '';
