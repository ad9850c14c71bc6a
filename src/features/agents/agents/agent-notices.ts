/**
 * Tells the holder of an account about agents that others register. Strangers can cause these notices, so no mail
 * repeats a stranger's text.
 */
import type { Exchange } from '../../../http/endpoint.ts'
import { requestOrigin, type Origin } from '../../../http/origin.ts'
import { perContext } from '../../../platform/context.ts'
import type { Tx } from '../../../platform/database/database.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { knownProgramOf } from '../../../protocol/user-agent.ts'
import { announceIn } from '../../identity/account-events/account-events.ts'
import { enqueuePush } from '../../push/notifications/notifications.ts'
import type { Claim } from './agent-claim-store.ts'

function strangerAt(exchange: Exchange): Origin {
  const origin = requestOrigin(exchange)
  return { ...origin, openedWith: origin.openedWith && knownProgramOf(origin.openedWith) }
}

/**
 * Notify the holder's devices that an agent requests access, in the transaction that opens its claim. The message never
 * contains the code: the holder must read it from the agent.
 */
export async function pushClaim(
  exchange: Exchange,
  tx: Tx,
  did: Did,
  { id, expiresAt, createdAt }: Claim,
): Promise<void> {
  const { ctx } = exchange
  if (ctx.config.notifications.relay === null || !mayPushClaim(ctx)(exchange, did)) return
  const message = {
    type: 'agent_claim_pending',
    title: 'A program asks for access',
    body: 'It wants to act for your account. If you did not start it, you can ignore this.',
    data: { claimAttemptId: id },
  }
  await enqueuePush(ctx, tx, did, message, { ttlSecs: Math.ceil((expiresAt - createdAt) / 1000) })
}

/** Charges the limit of the account once for each request, although a transaction may run twice. */
const mayPushClaim = perContext(({ limits }) => {
  const charged = new WeakMap<Exchange, boolean>()
  return (exchange: Exchange, did: Did): boolean => {
    const allowed = charged.get(exchange) ?? limits.charge({ name: 'agentAskPush', key: did })?.allowed !== false
    charged.set(exchange, allowed)
    return allowed
  }
})

/**
 * Order the mail about an agent that requests access to the account. `issuer` is the trusted provider that vouches for
 * it, if any.
 */
export const noteRequest = (exchange: Exchange, tx: Tx, did: Did, issuer: string | null): Promise<void> =>
  announceIn(tx, { ctx: exchange.ctx }, 'agentAsks', did, {
    origin: strangerAt(exchange),
    ...(issuer !== null && { issuer }),
  })

/** Order the mail about an agent that tried to get or give access without permission. Does not delay the response. */
export function announceRefusedAgent(exchange: Exchange, did: Did): void {
  const { ctx } = exchange
  const origin = strangerAt(exchange)
  ctx.background.run('mail about a refused agent', () =>
    ctx.db.transaction((tx) => announceIn(tx, { ctx }, 'agentRefused', did, { origin })),
  )
}
