/** An agent whose registration the account has confirmed, put in place without the ceremony. */
import { randomUUID } from 'node:crypto'
import { listAgentEvents, type AgentEvent } from '../../../src/features/agents/agents/agent-event-store.ts'
import {
  insertRegistration,
  revokeRegistration,
  type Registration,
} from '../../../src/features/agents/agents/agent-registration-store.ts'
import { issueAgentToken } from '../../../src/features/agents/agents/agent-tokens.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { xrpc } from './account.ts'
import { bearer, type Answer, type request } from './http.ts'
import type { TestPds } from '../servers/pds.ts'

/** What an operator has to switch on, so that agents may act. */
export const withAgents = { anonymousEnabled: true }

export const DEFAULT_SCOPES = ['atproto', 'blob:*/*', 'repo:*?action=create&action=update']

export interface RegisteredAgent {
  id: string
  did: string
  token: string
  call(nsid: string, init?: Parameters<typeof request>[1]): Promise<Answer>
}

export async function registerAgent(
  pds: TestPds,
  { did }: { did: string },
  { scopes = DEFAULT_SCOPES, ...given }: Partial<Registration> = {},
): Promise<RegisteredAgent> {
  const id = `reg_${randomUUID().replaceAll('-', '')}`
  const now = pds.clock.now()
  const registration: Registration = {
    id,
    did: did as Did,
    type: 'anonymous',
    issuer: null,
    subject: null,
    parentDid: null,
    email: null,
    clientName: null,
    openedWith: null,
    openedFrom: null,
    scopes,
    privateReads: true,
    assertionExpiresAt: null,
    claimTokenHash: null,
    claimTokenExpiresAt: null,
    confirmedAt: now,
    status: 'claimed',
    createdAt: now,
    updatedAt: now,
    ...given,
  }
  await pds.ctx.db.transaction((tx) => insertRegistration(tx, registration))
  return agentWith(pds, id, did, await tokenFor(pds, id, did, scopes))
}

/** End an agent as its owner does, or the operator. */
export const revoke = (pds: TestPds, { id }: Pick<RegisteredAgent, 'id'>): Promise<number> =>
  pds.ctx.db.transaction((tx) => revokeRegistration(tx, id, pds.clock.now()))

/** What is on record about an agent, oldest first. */
export async function eventsOf(
  pds: TestPds,
  { id }: Pick<RegisteredAgent, 'id'>,
): Promise<Pick<AgentEvent, 'type' | 'did' | 'detail'>[]> {
  const events = await listAgentEvents(pds.ctx.db, id, { beforeSeq: null, limit: 1000 })
  return events.toReversed().map(({ type, did, detail }) => ({ type, did, detail }))
}

/** A fresh access token, as an exchange hands it out. */
export const tokenFor = (
  pds: TestPds,
  registrationId: string,
  did: string,
  scopes: readonly string[],
): Promise<string> => issueAgentToken(pds.ctx, { did: did as Did, registrationId, scopes })

const agentWith = (pds: TestPds, id: string, did: string, token: string): RegisteredAgent => ({
  id,
  did,
  token,
  call: (nsid, init = {}) =>
    xrpc(pds, nsid, { ...init, headers: { ...bearer(token), ...(init.headers as Record<string, string>) } }),
})

export const post = (text: string) => ({ $type: 'app.bsky.feed.post', text, createdAt: '2026-01-01T00:00:00.000Z' })

export const createPost = (did: string, text = 'hello') => ({
  json: { repo: did, collection: 'app.bsky.feed.post', record: post(text) },
})
