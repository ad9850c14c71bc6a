/**
 * The door of agents: programs that act for an account, within scopes that its holder has confirmed, until the holder
 * or the agent's provider ends that.
 */
export type { AgentEvent } from './agent-event-store.ts'
export { auditPage, endAgent, endForOperator, visibleAgent } from './agent-owners.ts'
export { enterRegistration, endRegistration } from './agent-claims.ts'
export {
  findRegistration,
  listAgents,
  updateAssertionExpiry,
  type ListedAgent,
  type Registration,
  type RegistrationStatus,
} from './agent-registration-store.ts'
export { newAgentId } from './agent-ids.ts'
export { clampedScopes } from './agent-scopes.ts'
export { assertionExpiry, issueAssertion } from './agent-tokens.ts'
