-- Lexicon documents of others, as they were last read from their authors' repositories.

CREATE TABLE published_lexicon (
  nsid TEXT PRIMARY KEY,
  document TEXT NOT NULL,
  fetched_at INTEGER NOT NULL
);

CREATE INDEX published_lexicon_fetched_at ON published_lexicon (fetched_at);
