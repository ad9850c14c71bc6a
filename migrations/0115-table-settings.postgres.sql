-- The lowest migration that a server has to know to use a schema with this one: 0 for all that only adds.
ALTER TABLE schema_migration ADD COLUMN needs INTEGER NOT NULL DEFAULT 0;

-- Every commit replaces the packed nodes, which do not compress.
ALTER TABLE repo ALTER COLUMN fresh SET STORAGE EXTERNAL;
ALTER TABLE repo ALTER COLUMN commit_block SET STORAGE EXTERNAL;

-- Rows that are updated all the time find room for their next version on the same page, without new index entries.
ALTER TABLE repo SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, toast.autovacuum_vacuum_scale_factor = 0.05);
ALTER TABLE session SET (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);
ALTER TABLE oauth_session SET (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);

-- Few rows, many versions.
ALTER TABLE commit_mark SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
ALTER TABLE node SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
ALTER TABLE lease SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- Rows that come and go in tables that may be large, where a fifth of them, the default, is too many dead rows.
ALTER TABLE repo_node SET (autovacuum_vacuum_scale_factor = 0.05);
ALTER TABLE oauth_replay SET (autovacuum_vacuum_scale_factor = 0.05);
ALTER TABLE step SET (autovacuum_vacuum_scale_factor = 0.05);
