/**
 * The door of agents: programs that act for an account, within scopes that its holder has confirmed, until the holder
 * or their provider ends it.
 *
 * Guards look up agents here, so this feature must not depend on `auth`; its routes may.
 */
export { insertAgentEvent, insertAgentUse, type AgentEvent, type AgentUse } from './agent-event-store.ts'
export { auditPage, endAgent, visibleAgent } from './agent-owners.ts'
export { endRegistration } from './agent-claims.ts'
export {
  findRegistration,
  insertRegistration,
  listAgents,
  updateAssertionExpiry,
  type ListedAgent,
  type Registration,
} from './agent-registration-store.ts'
export {
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
export { reachOf } from './agent-standing.ts'
export { claimsToBeAgentToken, readAgentToken } from './agent-tokens.ts'
