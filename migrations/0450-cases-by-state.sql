-- Lists of cases in one state, newest first, need not read all that ever were in it.
CREATE INDEX moderation_case_state ON moderation_case (state, seq);
