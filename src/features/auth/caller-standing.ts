/**
 * Callers whose requests outlast their guard. A write, an upload or a forwarded request may take longer than it takes to
 * sign out, or to end the agent, so each of them asks again before it takes effect.
 */
import type { Context } from '../../platform/context.ts'
import type { Reader } from '../../platform/database/database.ts'
import { accountNotFound, refuseFallen, statusOfCaller, type Standing } from '../accounts/accounts.ts'
import { oauthSessionStanding } from '../oauth/oauth.ts'
import type { AgentCaller } from './agent-credential.ts'
import { isAgent, refuseEndedAgent } from './agent-use.ts'
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

/** Throws the refusal of a caller whose session, or who as an agent, has ended, and `AccountNotFound`. */
export async function refuseEnded(ctx: Context, reader: Reader, caller: Caller): Promise<void> {
  if (isAgent(caller)) return refuseEndedAgent(ctx, reader, caller)
  const standing = standingOf(ctx, caller)
  if (standing === null) return
  const account = await statusOfCaller(reader, caller.did, standing)
  if (account === null) throw accountNotFound()
  refuseFallen(standing, account)
}
