/** What account holders see of their agents, and how they and operators end them. */
import type { Exchange } from '../../../http/endpoint.ts'
import type { Context } from '../../../platform/context.ts'
import type { Reader, Tx } from '../../../platform/database/database.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'
import { announceIn } from '../../identity/account-events/account-events.ts'
import { recordAudit } from '../../operations/operators/operators.ts'
import { endRegistration } from './agent-claims.ts'
import { listAgentEvents, type AgentEvent } from './agent-event-store.ts'
import {
  claimedAgentsOf,
  findRegistration,
  freeSubjectsOf,
  listAgentsOfIssuer,
  ownNameOf,
  type Registration,
} from './agent-registration-store.ts'

/** Returns the registration if it acts for the account or was made by it, else null. */
export async function visibleAgent(reader: Reader, did: Did, id: string): Promise<Registration | null> {
  const registration = await findRegistration(reader, id)
  return registration !== null && (registration.did === did || registration.parentDid === did) ? registration : null
}

/** End an agent for its holder. Returns false if the account has no such agent. Ending it again changes nothing. */
export async function endAgent(exchange: Exchange, did: Did, id: string): Promise<boolean> {
  const { db, clock } = exchange.ctx
  return db.transaction(async (tx) => {
    await exchange.revalidate(tx)
    const registration = await visibleAgent(tx, did, id)
    if (registration === null) return false
    if ((await endRegistration(tx, registration, clock.now())) > 0)
      await announceIn(tx, exchange, 'agentEnded', did, { name: ownNameOf(registration) })
    return true
  })
}

/**
 * End every agent that the account has confirmed, because an intruder may have confirmed it. A provider may then
 * request access again, just as apps can be signed in again, except for an agent that was ended individually. Returns
 * how many ended.
 */
export async function endAgentsOf(
  tx: Tx,
  did: Did,
  now: Millis,
  source: 'password_reset' | 'operator',
): Promise<number> {
  const agents = await claimedAgentsOf(tx, did)
  await freeSubjectsOf(tx, did)
  for (const agent of agents) await endRegistration(tx, agent, now, { source })
  return agents.length
}

/** Returns a page of what an agent did, newest first. `cursor` is for the next page; null if this is the last. */
export async function auditPage(
  { db }: Pick<Context, 'db'>,
  id: string,
  page: { beforeSeq: number | null; limit: number },
): Promise<{ events: AgentEvent[]; cursor: string | null }> {
  const events = await listAgentEvents(db, id, page)
  return { events, cursor: events.length === page.limit ? String(events.at(-1)!.seq) : null }
}

// Operators

/** Most agents that one transaction ends: each may cause a mail, and other writes wait. */
const BATCH = 50

/** End an agent for an operator, with the mail to its holder. Returns false if there is no such agent. */
export async function endAgentAs(exchange: Exchange, actor: string, id: string): Promise<boolean> {
  const { db } = exchange.ctx
  return db.transaction(async (tx) => {
    const registration = await findRegistration(tx, id)
    if (registration === null) return false
    if (registration.status !== 'revoked') {
      await endForOperator(exchange, tx, actor, registration)
      await recordAudit(exchange, tx, {
        actor,
        action: 'agents_ended',
        subject: registration.did ?? id,
        detail: JSON.stringify({ registration: id }),
      })
    }
    return true
  })
}

/** End every agent for which an issuer vouches, in transactions of bounded size. Returns how many. */
export async function endAgentsOfIssuer(exchange: Exchange, actor: string, issuer: string): Promise<number> {
  let ended = 0
  for (;;) {
    const batch = await exchange.ctx.db.transaction(async (tx) => {
      const registrations = await listAgentsOfIssuer(tx, issuer, BATCH)
      for (const registration of registrations) await endForOperator(exchange, tx, actor, registration)
      if (registrations.length > 0)
        await recordAudit(exchange, tx, {
          actor,
          action: 'agents_ended',
          subject: issuer,
          detail: JSON.stringify({ ended: registrations.length }),
        })
      return registrations.length
    })
    ended += batch
    if (batch < BATCH) return ended
  }
}

/** End an agent for an operator, in a transaction of the caller, with the mail to its holder. */
export async function endForOperator(
  exchange: Exchange,
  tx: Tx,
  actor: string,
  registration: Pick<Registration, 'id' | 'did' | 'clientName' | 'openedWith' | 'confirmedAt'>,
): Promise<void> {
  await endRegistration(tx, registration, exchange.ctx.clock.now(), { source: 'operator' })
  // Until the holder has confirmed the agent, its name may be a text that a stranger wants to have mailed.
  const name = registration.confirmedAt === null ? undefined : ownNameOf(registration)
  if (registration.did !== null)
    await announceIn(tx, exchange, 'agentEndedByOperator', registration.did, { actor, name })
}
