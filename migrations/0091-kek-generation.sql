-- How often the master key has been changed.
CREATE TABLE kek_generation (generation INTEGER NOT NULL);
INSERT INTO kek_generation (generation) VALUES (0);
