/**
 * Agents as operators see them: how many there are, and how to end them. What agents did is only for their account
 * holders.
 */
import { Type } from '@sinclair/typebox'
import { route } from '../../../http/endpoint.ts'
import { invalidRequest, notFound } from '../../../http/errors.ts'
import { readJson } from '../../../http/json-input.ts'
import { actorOf, operator } from '../../operations/operators/operators.ts'
import { endAgentAs, endAgentsOfIssuer } from './agent-owners.ts'
import { countAgents } from './agent-registration-store.ts'

export const agentAdminRoutes = [
  route('GET', '/v1/admin/agents', {
    auth: operator('readAccounts'),
    async handler({ ctx }) {
      const { trustedIssuers } = ctx.config.agentAuth
      const counts = await countAgents(ctx.db)
      return {
        trustedIssuers: trustedIssuers.map(({ issuer }) => issuer),
        agents: counts.map(({ issuer, ...row }) => ({
          ...row,
          ...(issuer !== null && { issuer, trusted: trustedIssuers.some((trusted) => trusted.issuer === issuer) }),
        })),
      }
    },
  }),

  route('POST', '/v1/admin/agents/revoke', {
    auth: operator(),
    async handler(call) {
      const text = Type.Optional(Type.String({ minLength: 1 }))
      const { registrationId, issuer } = await readJson(call.body, Type.Object({ registrationId: text, issuer: text }))
      if ((registrationId === undefined) === (issuer === undefined))
        throw invalidRequest('name either a registrationId or an issuer')
      const actor = actorOf(call.caller)
      if (issuer !== undefined) return { issuer, ended: await endAgentsOfIssuer(call, actor, issuer) }
      if (!(await endAgentAs(call, actor, registrationId!))) throw notFound('No such agent')
      return { registrationId, status: 'revoked' }
    },
  }),
]
