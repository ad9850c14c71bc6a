-- No row is older than this on PostgreSQL. Blocks and frames do not compress, and are read whole or not at all.
ALTER TABLE record ALTER COLUMN value SET STORAGE EXTERNAL;
ALTER TABLE repo_node ALTER COLUMN bytes SET STORAGE EXTERNAL;
ALTER TABLE repo_seq ALTER COLUMN frame SET STORAGE EXTERNAL;
