-- The few records that are taken down, for whoever asks which they are.
CREATE INDEX record_takedown ON record (repo_id, takedown_ref) WHERE takedown_ref IS NOT NULL;
