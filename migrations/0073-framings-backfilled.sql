-- Rows from before framings were kept get theirs, so that an export need not work any out.
UPDATE record SET framing = CASE
  WHEN length(value) + 36 < 128 THEN unhex(printf('%02x', length(value) + 36))
  WHEN length(value) + 36 < 16384 THEN unhex(printf('%02x%02x', (length(value) + 36) & 127 | 128, (length(value) + 36) >> 7))
  ELSE unhex(printf('%02x%02x%02x', (length(value) + 36) & 127 | 128, (length(value) + 36) >> 7 & 127 | 128, (length(value) + 36) >> 14))
END WHERE framing IS NULL;

UPDATE repo_node SET framing = CASE
  WHEN length(bytes) + 36 < 128 THEN unhex(printf('%02x', length(bytes) + 36))
  WHEN length(bytes) + 36 < 16384 THEN unhex(printf('%02x%02x', (length(bytes) + 36) & 127 | 128, (length(bytes) + 36) >> 7))
  ELSE unhex(printf('%02x%02x%02x', (length(bytes) + 36) & 127 | 128, (length(bytes) + 36) >> 7 & 127 | 128, (length(bytes) + 36) >> 14))
END WHERE framing IS NULL;
