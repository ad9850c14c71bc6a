-- Lists of an account's blobs skip from one to the next, and ask of each whether a record since a revision refers to it.
CREATE INDEX blob_reference_rev ON blob_reference (did, cid, rev);
