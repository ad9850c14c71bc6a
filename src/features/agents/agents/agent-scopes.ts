/** Scopes of agents: lists of canonical texts, which are compared as texts. */
import type { Config } from '../../../platform/configuration/config.ts'
import type { Registration } from './agent-registration-store.ts'

function intersection(scopes: readonly string[], others: readonly string[]): string[] {
  const known = new Set(others)
  return scopes.filter((scope) => known.has(scope))
}

/**
 * Returns which scopes an agent still has, of those that it once had: leaves out scopes that the configuration or the
 * registration no longer grants. Scopes that are configured later never widen the result.
 */
export const clampedScopes = (
  { agentAuth }: Config,
  { scopes }: Pick<Registration, 'scopes'>,
  had: readonly string[] = scopes,
): string[] => intersection(intersection(scopes, agentAuth.grantedScopes), had)

/** Whether the provider that vouched for the agent is still trusted. Agents without a provider need none. */
export const isVouchedFor = ({ agentAuth }: Config, { type, issuer }: Pick<Registration, 'type' | 'issuer'>): boolean =>
  type !== 'identity_assertion' || agentAuth.trustedIssuers.some((trusted) => trusted.issuer === issuer)
