/**
 * The door of agents: programs that act for an account, within scopes that its holder has confirmed, until the holder
 * or their provider ends it.
 *
 * Guards look up agents here, so this feature must not depend on `auth`; its routes may.
 */
export { insertAgentEvent, listAgentEvents, type AgentEvent, type AgentEventType } from './agent-event-store.ts'
export { agentGrants } from './agent-grants.ts'
export { endRegistration } from './agent-claims.ts'
export { deleteShownClaimsOf } from './agent-claim-page-store.ts'
export {
  deleteAgentsOf,
  isClaimedBy,
  registrationsOf,
  revokeRegistration,
  type Registration,
  type RegistrationStatus,
  type RegistrationType,
} from './agent-registration-store.ts'
export { claimsToBeAgentToken, readAgentToken } from './agent-tokens.ts'
