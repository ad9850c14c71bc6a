/** The names that the protocol of agents gives to grants, tokens and events. */

/** Grants by which agents get tokens. */
export const JWT_BEARER_GRANT = 'urn:ietf:params:oauth:grant-type:jwt-bearer'
export const CLAIM_GRANT = 'urn:workos:agent-auth:grant-type:claim'

/** The kind of token with which a provider vouches for an agent. */
export const ID_JAG = 'urn:ietf:params:oauth:token-type:id-jag'

/** The event by which a provider ends an agent. */
export const ASSERTION_REVOKED = 'https://schemas.workos.com/events/agent/auth/identity/assertion/revoked'

/** Longest name by which an agent may call itself when it registers (`client_name`). */
export const MAX_AGENT_NAME_CHARS = 80
