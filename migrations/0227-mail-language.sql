-- The language of the mails to an account holder, as a tag of RFC 5646. NULL: as the server is configured.
ALTER TABLE account ADD COLUMN language TEXT;
