-- The highest share of a quota, in percent, of which the account holder has been warned since it was set.
ALTER TABLE account ADD COLUMN records_warned_percent INTEGER;
ALTER TABLE account ADD COLUMN blobs_warned_percent INTEGER;
