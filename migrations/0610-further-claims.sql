-- Whether the account is to have the handle beside those that it has, and not in place of them.
ALTER TABLE name_claim ADD COLUMN is_further INTEGER NOT NULL DEFAULT 0;
