/**
 * What an agent may do at this moment. A token only says what the agent could do when it was issued. Since then, the
 * account may have ended the agent or been deactivated, and the operator may have removed the agent's issuer or some
 * scopes.
 */
import { wantsAgents } from '../../../platform/configuration/capabilities.ts'
import type { Context } from '../../../platform/context.ts'
import type { Reader } from '../../../platform/database/database.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { accountStatus } from '../../identity/accounts/accounts.ts'
import { findClaimed } from './agent-registration-store.ts'
import { clampedScopes, isVouchedFor } from './agent-scopes.ts'

/** An agent, and the account that it acts for. */
export interface Agent {
  registrationId: string
  did: Did
}

/** What the agent may do now. */
export interface AgentGrantedScope {
  scopes: readonly string[]
  /** Whether it may read what only the account sees. */
  privateReads: boolean
  /** Whether the account was made for the agent. */
  ofChild: boolean
}

/**
 * Returns what the agent may do now; null if it may not act. `had`: the scopes in its token, which the result never
 * exceeds.
 */
export async function grantedScopeOf(
  { config }: Pick<Context, 'config'>,
  reader: Reader,
  { registrationId, did }: Agent,
  had?: readonly string[],
): Promise<AgentGrantedScope | null> {
  if (!wantsAgents(config)) return null
  const claimed = await findClaimed(reader, registrationId, did)
  if (claimed === null || !isVouchedFor(config, claimed) || (await accountStatus(reader, did)) !== 'active') return null
  const scopes = clampedScopes(config, claimed, had)
  return scopes.length === 0 ? null : { scopes, privateReads: claimed.privateReads, ofChild: claimed.type === 'child' }
}
