/** Names of grants, tokens and events in the agent protocol. */

/** Grant types with which agents get tokens. */
export const JWT_BEARER_GRANT = 'urn:ietf:params:oauth:grant-type:jwt-bearer'
export const CLAIM_GRANT = 'urn:workos:agent-auth:grant-type:claim'

/** The kind of token with which a provider vouches for an agent. */
export const ID_JAG = 'urn:ietf:params:oauth:token-type:id-jag'

/** The event with which a provider revokes an agent. */
export const ASSERTION_REVOKED = 'https://schemas.workos.com/events/agent/auth/identity/assertion/revoked'

/** Longest name that an agent may give itself when it registers (`client_name`). */
export const MAX_AGENT_NAME_CHARS = 80
