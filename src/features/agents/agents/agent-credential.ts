/**
 * The credential of agents: an access token sent as `Bearer`. The registration behind it is read at every request, so
 * that an agent stops the moment it is revoked.
 *
 * An endpoint is closed to agents unless its required scope says `agents`, whatever scopes they have: no configured
 * scope may open a new endpoint, or one that manages accounts, identities or agents.
 */
import type { Credential } from '../../../http/credential.ts'
import { insufficientScope, Refusal } from '../../../http/errors.ts'
import { permissionsOf } from '../../../protocol/scopes.ts'
import { agentKind, type AgentCaller } from '../../access/callers/callers.ts'
import { requireGrant } from '../../access/auth/auth.ts'
import { presentedAs } from '../../../http/credential-guards.ts'
import { insertAgentUse } from './agent-event-store.ts'
import { grantedScopeOf } from './agent-granted-scope.ts'
import { claimsToBeAgentToken, readAgentToken } from './agent-tokens.ts'

const bearer = presentedAs('bearer')

const refused = (name: string, description: string) =>
  new Refusal(401, name, description, {
    headers: { 'WWW-Authenticate': `Bearer error="invalid_token", error_description="${description}"` },
  })

/** The refusal of an agent whose registration, account, issuer or scopes no longer exist. */
const agentEnded = () => refused('InvalidToken', 'The agent may no longer act for this account')

export const agentCredential: Credential<AgentCaller> = {
  ...agentKind,
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
        privateReads: read.privateReads,
        ofChild: read.ofChild,
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
  async revalidate(caller, ctx, reader) {
    if ((await grantedScopeOf(ctx, reader, caller)) === null) throw agentEnded()
  },
  async record({ registrationId, did }, { clock }, tx, { type, detail }) {
    if ((await insertAgentUse(tx, { registrationId, did, type, detail, now: clock.now() })) === 0) throw agentEnded()
  },
  may(caller, { agents = false, grants = 'refuse' }, exchange) {
    if (!agents) throw insufficientScope('Agents may not call this endpoint')
    requireGrant(caller, grants, exchange)
  },
}
