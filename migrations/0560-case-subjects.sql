-- A notice asks for each of its subjects whether there is a case, and an account may have thousands.
CREATE INDEX moderation_case_subject ON moderation_case (did, kind, item);
DROP INDEX moderation_case_did;
