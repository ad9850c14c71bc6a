-- The language in which a person on the waiting list is invited. NULL: as the server is configured.
ALTER TABLE waitlist_entry ADD COLUMN language TEXT;
