/**
 * The credential of OAuth apps: an access token with a DPoP proof of the key that it is bound to. RFC 9449. The session
 * of the token says whether the account holder or a delegate has signed the app in.
 */
import type { Credential } from '../../../http/credential.ts'
import { appKind, isDelegate, type DelegateCaller, type GrantCaller } from '../callers/callers.ts'
import { requireGrant, requireNotTakendown, revalidateWithAccount } from '../auth/auth.ts'
import { presentedAs } from '../../../http/credential-guards.ts'
import { recordDelegateAct } from '../delegations/delegations.ts'
import { invalidAccessToken } from '../tokens/tokens.ts'
import { oauthSessionRevalidation, verifyDpopToken } from './oauth.ts'

export const appCredential: Credential<GrantCaller | DelegateCaller> = {
  ...appKind,
  recognises: presentedAs('dpop'),
  async check(exchange, token) {
    const { did, permissions, sessionId, tokenId, delegation } = await verifyDpopToken(exchange, token)
    const caller = { did, permissions, personalDetails: false, sessionId, tokenId } as const
    return delegation === null
      ? { ...caller, credential: 'oauth' }
      : { ...caller, credential: 'delegate', delegationId: delegation.id }
  },
  async may(caller, { grants = 'refuse', refusesTakendown }, exchange) {
    // OAuth sessions are deleted on takedown, so a live one already implies that the account is not taken down.
    if (refusesTakendown) await requireNotTakendown(exchange, caller.did)
    requireGrant(caller, grants, exchange)
  },
  async record(caller, ctx, tx, act) {
    if (isDelegate(caller) && !(await recordDelegateAct(ctx, tx, caller.delegationId, act))) throw invalidAccessToken()
  },
  revalidation: oauthSessionRevalidation,
  revalidate: (caller, _, reader) => revalidateWithAccount(reader, oauthSessionRevalidation(caller)),
}
