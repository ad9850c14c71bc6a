-- The sign-up that a reserved key is bound to, once one names it: the hex SHA-256 of its email address. The operation that
-- names the key is public from then on, and must not let anybody else sign up with it.
ALTER TABLE reserved_signing_key ADD COLUMN bound_to TEXT;
