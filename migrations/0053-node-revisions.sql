-- What is new in a tree since a revision is found without looking at what is old.
CREATE INDEX repo_node_rev ON repo_node (repo_id, rev, cid);
