-- Metadata of apps that was fetched long ago is deleted every five minutes. To look for it in the documents themselves,
-- of which strangers publish 64 MiB, took 100 ms.
CREATE INDEX oauth_client_by_age ON oauth_client (fetched_at);
