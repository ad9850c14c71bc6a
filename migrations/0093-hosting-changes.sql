-- How often the document was switched on or off. Whoever fetches it from its domain sees by this whether it was served here meanwhile.
ALTER TABLE web_document ADD COLUMN hosting_changes INTEGER NOT NULL DEFAULT 0;
