-- What a provider called an agent that ended with everything else that was signed in: `subject` is NULL then, so that the
-- provider may register the agent anew.
ALTER TABLE agent_registration ADD COLUMN former_subject TEXT;
