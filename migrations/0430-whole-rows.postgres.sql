-- Rows that are written with every commit stay whole: parts elsewhere have index entries and heads of their own in the
-- log. An event fits on a page without them.
ALTER TABLE unnumbered_event SET (toast_tuple_target = 8160);
ALTER TABLE repo_seq SET (toast_tuple_target = 8160);

-- With room for its next version on the page of a repository, the log has only what differs, and no index changes.
ALTER TABLE repo SET (fillfactor = 50, toast_tuple_target = 4080);
