-- Lists of the blobs of a space skip from one to the next, however many records refer to each.
CREATE INDEX space_blob_reference_blob ON space_blob_reference (did, space, cid, rev);
