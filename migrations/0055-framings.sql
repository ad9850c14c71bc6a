-- How the section of a block begins in an archive: a varint of its length. Worked out for every block, it took a third of an
-- export. Rows that are older than this have none.
ALTER TABLE record ADD COLUMN framing BLOB;
ALTER TABLE repo_node ADD COLUMN framing BLOB;
