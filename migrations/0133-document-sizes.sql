-- The sizes of cached documents: their sum is read from an index alone, and the largest are found without a sort.
CREATE INDEX did_document_by_size ON did_document (OCTET_LENGTH(document));
CREATE INDEX oauth_client_by_size ON oauth_client (OCTET_LENGTH(document));
