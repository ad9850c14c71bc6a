/** Reads whether a caller still stands with the account, for requests that are made so often that a look-up of its own would count. */
import type { Context } from '../../platform/context.ts'
import type { Standing } from '../accounts/accounts.ts'
import { oauthSessionStanding } from '../oauth/oauth.ts'
import type { AgentCaller } from './agent-credential.ts'
import type { GrantCaller } from './app-credential.ts'
import type { ServiceAccountCaller } from './service-credentials.ts'
import type { SessionCaller } from './session-credential.ts'
import { sessionStanding } from './session-standing.ts'

type Caller = SessionCaller | GrantCaller | AgentCaller | ServiceAccountCaller

/**
 * What must still hold of the caller, to be read with the account; null for an agent, which takes more than a condition,
 * and for a service, whose token cannot be taken back.
 */
export function standingOf(ctx: Context, caller: Caller): Standing | null {
  if (caller.credential === 'agent' || caller.credential === 'service') return null
  return caller.credential === 'oauth' ? oauthSessionStanding(caller) : sessionStanding(ctx, caller)
}
