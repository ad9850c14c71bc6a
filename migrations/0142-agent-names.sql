-- What an agent calls itself, and the program and the network that registered it, so that its account holder can tell it from others.
ALTER TABLE agent_registration ADD COLUMN client_name TEXT;
ALTER TABLE agent_registration ADD COLUMN opened_with TEXT;
ALTER TABLE agent_registration ADD COLUMN opened_from TEXT;
