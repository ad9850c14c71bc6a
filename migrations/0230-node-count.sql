-- Number of nodes that the tree had at revision `nodes_rev`. If that is not the revision of the repository, it is not
-- known. It has a revision of its own, because older versions keep the number of records alone.
ALTER TABLE repo ADD COLUMN node_count INTEGER;
ALTER TABLE repo ADD COLUMN nodes_rev TEXT;
