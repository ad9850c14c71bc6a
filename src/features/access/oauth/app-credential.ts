/** The credential of OAuth apps: an access token with a DPoP proof of the key that it is bound to. RFC 9449. */
import type { Credential } from '../../../http/credential.ts'
import { appKind, type GrantCaller } from '../callers/callers.ts'
import { requireGrant, requireNotTakendown, revalidateWithAccount } from '../auth/auth.ts'
import { presentedAs } from '../../../http/credential-guards.ts'
import { oauthSessionRevalidation, verifyDpopToken } from './oauth.ts'

export const appCredential: Credential<GrantCaller> = {
  ...appKind,
  recognises: presentedAs('dpop'),
  async check(exchange, token) {
    const { did, permissions, sessionId, tokenId } = await verifyDpopToken(exchange, token)
    return { did, credential: 'oauth', permissions, personalDetails: false, sessionId, tokenId }
  },
  async may(caller, { grants = 'refuse', refusesTakendown }, exchange) {
    // OAuth sessions are deleted on takedown, so a live one already implies that the account is not taken down.
    if (refusesTakendown) await requireNotTakendown(exchange, caller.did)
    requireGrant(caller, grants, exchange)
  },
  revalidation: oauthSessionRevalidation,
  revalidate: (caller, _, reader) => revalidateWithAccount(reader, oauthSessionRevalidation(caller)),
}
