/** What agents do is recorded, as far as they still may do it. */
import type { Context } from '../../platform/context.ts'
import type { Reader, Tx } from '../../platform/database/database.ts'
import { insertAgentUse, scopesOf, type AgentUse } from '../agents/agents.ts'
import { agentEnded, type AgentCaller } from './agent-credential.ts'

/** Throws `InvalidToken` (401) if the agent may no longer act. */
export async function refuseEndedAgent(ctx: Pick<Context, 'config'>, reader: Reader, agent: AgentCaller): Promise<void> {
  if ((await scopesOf(ctx, reader, agent)) === null) throw agentEnded()
}

export const isAgent = (caller: { credential: string }): caller is AgentCaller => caller.credential === 'agent'

/**
 * Record what an agent did, in the transaction that did it. Throws `InvalidToken` (401) if it was ended meanwhile, which
 * undoes the transaction.
 */
export async function recordAgentUse(
  { clock }: Pick<Context, 'clock'>,
  tx: Tx,
  { registrationId, did }: AgentCaller,
  type: AgentUse,
  detail: Record<string, unknown>,
): Promise<void> {
  if ((await insertAgentUse(tx, { registrationId, did, type, detail, now: clock.now() })) === 0) throw agentEnded()
}
