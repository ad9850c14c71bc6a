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
import { findClaimed, type Registration } from './agent-registration-store.ts'
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

/** Why a confirmed agent may not act, in the order of the checks: its provider, its account, its scopes. */
export type ScopeFault = 'untrusted' | 'inactive' | 'no scope'

/**
 * Returns the scopes that a confirmed agent of an account has now, or why it may not act. `had`: the scopes in its
 * token, which the result never exceeds.
 */
export async function scopesNow(
  { config }: Pick<Context, 'config'>,
  reader: Reader,
  { did, ...claimed }: Pick<Registration, 'type' | 'issuer' | 'scopes'> & { did: Did },
  had?: readonly string[],
): Promise<readonly string[] | ScopeFault> {
  if (!isVouchedFor(config, claimed)) return 'untrusted'
  if ((await accountStatus(reader, did)) !== 'active') return 'inactive'
  const scopes = clampedScopes(config, claimed, had)
  return scopes.length === 0 ? 'no scope' : scopes
}

/** Returns what the agent may do now; null if it may not act. `had` as for `scopesNow`. */
export async function grantedScopeOf(
  ctx: Pick<Context, 'config'>,
  reader: Reader,
  { registrationId, did }: Agent,
  had?: readonly string[],
): Promise<AgentGrantedScope | null> {
  if (!wantsAgents(ctx.config)) return null
  const claimed = await findClaimed(reader, registrationId, did)
  const scopes = claimed && (await scopesNow(ctx, reader, { ...claimed, did }, had))
  if (claimed === null || scopes === null || typeof scopes === 'string') return null
  return { scopes, privateReads: claimed.privateReads, ofChild: claimed.type === 'child' }
}
