-- The lowest migration that a server has to know to use a schema with this one: 0 for all that only adds.
ALTER TABLE schema_migration ADD COLUMN needs INTEGER NOT NULL DEFAULT 0;
