/** What the holder of an account is told of agents that others register. A stranger causes these: no mail repeats a text of theirs. */
import type { Exchange } from '../../http/endpoint.ts'
import { originOf, type Origin } from '../../http/origin.ts'
import type { Tx } from '../../platform/database/database.ts'
import type { Did } from '../../protocol/identifiers.ts'
import { knownBrowserOf } from '../../protocol/user-agent.ts'
import { announceIn } from '../accounts/accounts.ts'

function strangerAt(exchange: Exchange): Origin {
  const origin = originOf(exchange)
  return { ...origin, openedWith: origin.openedWith && knownBrowserOf(origin.openedWith) }
}

/** Order the mail about an agent that asks for the account. `issuer` is the trusted provider that vouches for it, if any. */
export const noteRequest = (exchange: Exchange, tx: Tx, did: Did, issuer: string | null): Promise<void> =>
  announceIn(tx, { ctx: exchange.ctx }, 'agentAsks', did, { origin: strangerAt(exchange), ...(issuer !== null && { issuer }) })

/** Order the mail about an agent that tried to get, or to give away, what it may not. Does not delay the response. */
export function announceRefusedAgent(exchange: Exchange, did: Did): void {
  const { ctx } = exchange
  const origin = strangerAt(exchange)
  ctx.background.run('mail about a refused agent', () =>
    ctx.db.transaction((tx) => announceIn(tx, { ctx }, 'agentRefused', did, { origin })),
  )
}
