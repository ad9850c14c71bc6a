/** The credential of OAuth apps: an access token with a DPoP proof of the key that it is bound to. RFC 9449. */
import type { Exchange } from '../../http/endpoint.ts'
import { forbidden } from '../../http/errors.ts'
import type { Did } from '../../protocol/identifiers.ts'
import type { Permissions } from '../../protocol/scopes.ts'
import { oauthSessionStanding, verifyDpopToken } from '../oauth/oauth.ts'
import { presentedAs, requireNotTakendown, requireStanding, type Credential, type Demand } from './credential.ts'
import { assertPermission } from './permissions.ts'

/** An app, limited to its grant. */
export interface GrantCaller {
  did: Did
  credential: 'oauth'
  permissions: Permissions
  personalDetails: false
  sessionId: string
  /** Token id of the grant, for the audit log. */
  tokenId: string
}

export const appCredential: Credential<GrantCaller> = {
  name: 'app',
  recognises: presentedAs('dpop'),
  async check(exchange, token) {
    const { did, permissions, sessionId, tokenId } = await verifyDpopToken(exchange, token)
    return { did, credential: 'oauth', permissions, personalDetails: false, sessionId, tokenId }
  },
  async may({ did, permissions }, { grants = 'refuse', refusesTakendown }, exchange) {
    // OAuth sessions are deleted on takedown, so a live one already implies that the account is not taken down.
    if (refusesTakendown) await requireNotTakendown(exchange, did)
    requireGrant(permissions, grants, exchange)
  },
  again: (caller, _, reader) => requireStanding(reader, caller.did, oauthSessionStanding(caller)),
}

/** Throws `Forbidden` if the endpoint takes no grants, and `ScopeMissingError` if this one does not suffice. */
export function requireGrant(permissions: Permissions, grants: NonNullable<Demand['grants']>, exchange: Exchange): void {
  if (grants === 'any') return
  if (grants === 'refuse') throw forbidden('OAuth credentials are not supported for this endpoint')
  if (typeof grants === 'object') throw forbidden(grants.refuse)
  assertPermission(permissions, (granted) => grants(granted, exchange))
}
