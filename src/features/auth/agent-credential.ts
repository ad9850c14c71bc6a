/**
 * The credential of agents: an access token sent as `Bearer`. The registration behind it is read at every request, so
 * that an agent stops the moment it is revoked; `agent-use.ts` is for requests that take longer than that.
 *
 * An endpoint is closed to agents unless its demand says `agents`, whatever the scopes: a new endpoint, and everything
 * that manages accounts, identities or agents, must not open by a configured scope.
 */
import { forbidden, Refusal } from '../../http/errors.ts'
import type { Did } from '../../protocol/identifiers.ts'
import { permissionsOf, type Permissions } from '../../protocol/scopes.ts'
import { claimsToBeAgentToken, readAgentToken, scopesOf } from '../agents/agents.ts'
import { requireGrant } from './app-credential.ts'
import { presentedAs, type Credential } from './credential.ts'

/** An agent, limited to its scopes. */
export interface AgentCaller {
  did: Did
  credential: 'agent'
  permissions: Permissions
  personalDetails: false
  tokenId: string
  registrationId: string
}

const bearer = presentedAs('bearer')

const refused = (name: string, description: string) =>
  new Refusal(401, name, description, {
    headers: { 'WWW-Authenticate': `Bearer error="invalid_token", error_description="${description}"` },
  })

/** The refusal of an agent whose registration, account, issuer or scopes are gone. */
export const agentEnded = () => refused('InvalidToken', 'The agent may no longer act for this account')

export const agentCredential: Credential<AgentCaller> = {
  name: 'agent',
  recognises(exchange) {
    const token = bearer(exchange)
    return token !== null && claimsToBeAgentToken(token) ? token : null
  },
  /** Throws `ExpiredToken` or `InvalidToken` (401). */
  async check({ ctx }, token) {
    const read = await readAgentToken(ctx, token)
    if (read.ok)
      return {
        did: read.did,
        credential: 'agent',
        permissions: permissionsOf(read.scope),
        personalDetails: false,
        tokenId: read.tokenId,
        registrationId: read.registrationId,
      }
    switch (read.fault) {
      case 'expired':
        throw refused('ExpiredToken', 'Token has expired')
      case 'revoked':
        throw agentEnded()
      case 'unverifiable':
        throw refused('InvalidToken', 'Token could not be verified')
    }
  },
  async again(caller, { ctx }, reader) {
    if ((await scopesOf(ctx, reader, caller)) === null) throw agentEnded()
  },
  may({ permissions }, { agents = false, grants = 'refuse' }, exchange) {
    if (!agents) throw forbidden('Agents may not call this endpoint')
    requireGrant(permissions, grants, exchange)
  },
}
