-- Tells apart the TIDs of nodes that run at the same time. NULL in rows of a version that drew its clock id by lot.
ALTER TABLE node ADD COLUMN clock_id INTEGER;
