/** Scopes of agents: lists of canonical texts, which are compared as texts. */
import type { Config } from '../../../platform/configuration/config.ts'
import type { Registration } from './agent-registration-store.ts'

function intersection(scopes: readonly string[], others: readonly string[]): string[] {
  const known = new Set(others)
  return scopes.filter((scope) => known.has(scope))
}

/**
 * What an agent may have now, of the scopes that it had once: nothing that the configuration or the registration no
 * longer grants. Configured scopes that were added later never widen it.
 */
export const clampedScopes = (
  { agentAuth }: Config,
  { scopes }: Pick<Registration, 'scopes'>,
  had: readonly string[] = scopes,
): string[] => intersection(intersection(scopes, agentAuth.grantedScopes), had)

/** Whether the provider that vouched for the agent is still trusted. Agents without a provider need none. */
export const isVouchedFor = ({ agentAuth }: Config, { type, issuer }: Pick<Registration, 'type' | 'issuer'>): boolean =>
  type !== 'identity_assertion' || agentAuth.trustedIssuers.some((trusted) => trusted.issuer === issuer)
