/** Lists and revokes an account's agents. Always mounted: turning agents off must not hide existing ones. */
import { route } from '../../../http/endpoint.ts'
import { invalidClaim, notFound } from '../../../http/errors.ts'
import { clamp } from '../../../http/paged-list.ts'
import { wireTime, wireTimeOrNull } from '../../../protocol/identifiers.ts'
import { owner } from '../../access/auth/auth.ts'
import type { AgentEvent } from './agent-event-store.ts'
import { auditPage, endAgent, visibleAgent } from './agent-owners.ts'
import { listAgents, type ListedAgent } from './agent-registration-store.ts'

const MAX_PAGE = 100
const DEFAULT_PAGE = 50

/** The same refusal for an agent of another account, so as not to reveal whose it is. */
const unknownAgent = () => notFound('No such agent')

const agentView = ({
  id,
  type,
  issuer,
  subject,
  clientName,
  openedWith,
  openedFrom,
  scopes,
  privateReads,
  status,
  createdAt,
  updatedAt,
  lastUsedAt,
}: ListedAgent) => ({
  registrationId: id,
  registrationType: type,
  issuer: issuer ?? undefined,
  subject: subject ?? undefined,
  clientName: clientName ?? undefined,
  openedWith: openedWith ?? undefined,
  openedFrom: openedFrom ?? undefined,
  scopes,
  ...(!privateReads && { privateReads }),
  status,
  createdAt: wireTime(createdAt),
  updatedAt: wireTime(updatedAt),
  lastUsedAt: wireTimeOrNull(lastUsedAt) ?? undefined,
})

const eventView = ({ id, type, did, detail, createdAt }: AgentEvent) => ({
  id,
  eventType: type,
  did: did ?? undefined,
  detail: detail ?? undefined,
  createdAt: wireTime(createdAt),
})

/** Returns a whole number in the query, or null if it is absent. Throws `InvalidClaim`. */
function wholeNumber(params: URLSearchParams, name: string, pattern: RegExp): number | null {
  const text = params.get(name) ?? ''
  if (text === '') return null
  if (!pattern.test(text)) throw invalidClaim(`${name} is malformed`)
  return Number(text)
}

export const agentOwnerRoutes = [
  route('GET', '/v1/agents', {
    auth: owner,
    handler: async ({ ctx, caller }) => ({ agents: (await listAgents(ctx.db, caller.did)).map(agentView) }),
  }),

  route('POST', '/v1/agents/:registrationId/revoke', {
    auth: owner,
    async handler(call) {
      const { registrationId = '' } = call.path
      if (!(await endAgent(call, call.caller.did, registrationId))) throw unknownAgent()
      return { registrationId, status: 'revoked' }
    },
  }),

  route('GET', '/v1/agents/:registrationId/audit', {
    auth: owner,
    async handler({ ctx, caller, path: { registrationId = '' }, url: { searchParams } }) {
      const limit = clamp(wholeNumber(searchParams, 'limit', /^-?\d{1,15}$/) ?? DEFAULT_PAGE, 1, MAX_PAGE)
      const beforeSeq = wholeNumber(searchParams, 'cursor', /^\d{1,15}$/)
      if ((await visibleAgent(ctx.db, caller.did, registrationId)) === null) throw unknownAgent()
      const { events, cursor } = await auditPage(ctx, registrationId, { beforeSeq, limit })
      return { events: events.map(eventView), cursor: cursor ?? undefined }
    },
  }),
]
