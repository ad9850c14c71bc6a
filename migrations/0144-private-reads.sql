-- Whether an agent may read what only its account sees: 0 if the account holder has refused it.
ALTER TABLE agent_registration ADD COLUMN private_reads INTEGER NOT NULL DEFAULT 1;
