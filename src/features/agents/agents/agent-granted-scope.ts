/**
 * What an agent may do at this moment. A token says what it was made for; since then the account may have ended the
 * agent or been deactivated, and the operator may have removed the agent's issuer or some of the scopes.
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
  /** Whether the account was made for it. */
  ofChild: boolean
}

/** Returns what the agent may do now, of the scopes that it had once, or null if it may not act. */
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
