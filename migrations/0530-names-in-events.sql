-- The other account that `subject` names, so that its deletion takes the name out of the events of others.
ALTER TABLE account_event ADD COLUMN subject_did TEXT;
CREATE INDEX account_event_subject ON account_event (subject_did) WHERE subject_did IS NOT NULL;
