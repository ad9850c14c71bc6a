/**
 * The door of agents: programs that act for an account, within scopes that its holder has confirmed, until the holder
 * or their provider ends it.
 *
 * Guards look up agents here, so this feature must not depend on `auth`; its routes may.
 */
export {
  insertAgentEvent,
  insertAgentUse,
  listAgentEvents,
  type AgentEvent,
  type AgentEventType,
  type AgentUse,
} from './agent-event-store.ts'
export { auditPage, endAgent, endAgentsOf, visibleAgent } from './agent-owners.ts'
export { agentGrants } from './agent-grants.ts'
export { endRegistration } from './agent-claims.ts'
export { deleteShownClaimsOf } from './agent-claim-page-store.ts'
export {
  deleteAgentsOf,
  findRegistration,
  insertRegistration,
  listAgents,
  updateAssertionExpiry,
  revokeRegistration,
  type ListedAgent,
  type Registration,
  type RegistrationStatus,
  type RegistrationType,
} from './agent-registration-store.ts'
export {
  buryChild,
  childrenOf,
  deleteChild,
  findChild,
  firstParentOf,
  insertChild,
  livingChildrenOf,
  setChildDeletion,
  setChildFinished,
  setChildPublished,
  type Child,
} from './child-store.ts'
export { newAgentId } from './agent-ids.ts'
export { clampedScopes } from './agent-scopes.ts'
export { assertionExpiry, issueAssertion } from './agent-tokens.ts'
export { scopesOf, type Agent } from './agent-standing.ts'
export { claimsToBeAgentToken, readAgentToken } from './agent-tokens.ts'
