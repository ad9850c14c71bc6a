/** The stored state of an agent: where it is registered, and the credentials from its registration. */

export const AGENT_FORMAT = 1

export const registrationTypes = ['anonymous', 'service_auth', 'identity_assertion'] as const
export type RegistrationType = (typeof registrationTypes)[number]

/** A code for the account holder to confirm. */
export interface ClaimCode {
  userCode: string
  verificationUri: string
  /** RFC 3339. */
  expiresAt: string
}

export interface AgentContents {
  format: typeof AGENT_FORMAT
  /** Origin of the server. */
  server: string
  type: RegistrationType
  /** The name that the account holder sees. Null or missing: no name. */
  name?: string | null
  /** The address of the account, for `service_auth`. */
  loginHint: string | null
  /**
   * File with the provider's assertion, for `identity_assertion`. The agent reads it again when the server requires a
   * new assertion.
   */
  assertionFile: string | null
  /** Null before the first registration. */
  registration: {
    id: string | null
    /** Null if the server confirmed the agent at once, because it already knew the agent. */
    claimToken: string | null
    claim: ClaimCode | null
  } | null
  /**
   * The server's assertion, which the agent exchanges for access tokens. Null until the account holder has confirmed.
   */
  assertion: string | null
}

/** An agent that has not registered yet. */
export const freshAgent = ({
  server,
  type,
  name = null,
  loginHint = null,
  assertionFile = null,
}: Pick<AgentContents, 'server' | 'type'> &
  Partial<Pick<AgentContents, 'name' | 'loginHint' | 'assertionFile'>>): AgentContents => ({
  format: AGENT_FORMAT,
  server,
  type,
  name,
  loginHint,
  assertionFile,
  registration: null,
  assertion: null,
})
